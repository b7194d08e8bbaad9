"""Sources of VAAs that grow, as a live head follows them: files, Wormholescan's list, a guardian's spy."""

from __future__ import annotations

import base64
import json
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession

from permalake.config import Settings
from permalake.config.networks import WormholeSettings
from permalake.errors import ConfigError
from permalake.lake.head_position import LISTENED, Reached
from permalake.spark.frames import of_rows
from permalake.wormhole.sources import vaa_files, wormholescan
from permalake.wormhole.sources.document_cache import Document
from permalake.wormhole.sources.file_tail import FileTail
from permalake.wormhole.sources.spy import Gap, SpyStream
from permalake.wormhole.sources.vaa_documents import time_of_vaa
from permalake.wormhole.sources.wormhole_source import is_live

_LOG = logging.getLogger(__name__)
LINES = "value string, file string, fault string"
"""Columns of lines of JSON, as ``line_tasks.document_lines`` reads them."""
_LATE_SECONDS = 15 * 60
"""The explorer lists a VAA by the time in its body, and indexes it once its block is final."""
_LOOK_BACK_SECONDS = 3600.0
_SPY = "spy"
_AT_ONCE = 2_000
"""VAAs of a spy in one batch."""


@dataclass(frozen=True)
class News:
    """Documents that have come, in the columns of ``vaa_files.read``, and how far the source then is read."""

    documents: DataFrame
    position: Mapping[str, Any]


class GrowingSource(Protocol):
    """A source that is asked again and again; a document may come twice."""

    def news(self, before: Reached | None) -> News | None:
        """Return what has come since a position; None if that is nothing."""

    def keep(self) -> None:
        """Take note that the last news were added."""

    def close(self) -> None:
        """End what it holds open."""


def growing_source(spark: SparkSession, settings: Settings, section: WormholeSettings) -> GrowingSource:
    """Return the configured source.

    Raises:
        ConfigError: if it does not grow.
    """
    if settings.live.spy is not None:
        return SpiedVaas(spark, settings, settings.live.spy)
    if is_live(section):
        return ListedVaas(spark, settings, section)
    if section.path is None:
        raise ConfigError("wormhole.path: missing; point it at the folder with the VAA files")
    return GrowingFiles(spark, section.path)


class GrowingFiles:
    """Files that grow, or are added; the position says how far each was read."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self._spark = spark
        self._tail = FileTail(root, vaa_files.files_of)

    def news(self, before: Reached | None) -> News | None:
        """Return new lines."""
        piece = self._tail.after((before.source if before else None) or {})
        return piece and News(vaa_files.read_files(self._spark, piece[0]), piece[1])

    def keep(self) -> None:
        """Do nothing: the position says it."""

    def close(self) -> None:
        """Do nothing: no file stays open."""


class ListedVaas:
    """Wormholescan's list, whose newest part is asked for again and again.

    Each time down to some minutes before the newest VAA that is added; at the beginning, and once an hour,
    down to the oldest day that the head may hold, as VAAs may be indexed late. What was added is remembered
    as long as the process lives.
    """

    def __init__(self, spark: SparkSession, settings: Settings, section: WormholeSettings) -> None:
        self._spark, self._settings, self._section = spark, settings, section
        self._added: dict[bytes, int] = {}
        self._asked: dict[bytes, int] = {}
        self._looked_back: float | None = None
        self._looks_back = False

    def news(self, before: Reached | None) -> News | None:
        """Return documents that the list did not have before.

        Raises:
            PermalakeError: if the service does not answer.
        """
        now = time.monotonic()
        if before is None:  # the head was dropped, and lacks what was added
            self._added, self._looked_back = {}, None
        due = self._looked_back is None or now - self._looked_back > _LOOK_BACK_SECONDS
        since = _oldest(self._settings)
        if before is not None and not due:
            since = max(since, before.timestamp - _LATE_SECONDS)
        self._asked.clear()
        newest = wormholescan.newest(self._settings, self._section, since, self._is_new)
        self._looks_back = due
        if not newest:
            self.keep()
            return None
        rows = [(json.dumps(document, default=str), "vaas", None) for document in newest]
        lines = of_rows(self._spark, rows, LINES)
        return News(vaa_files.of_json_lines(lines, wormholescan.NAME), {})

    def keep(self) -> None:
        """Remember what was added, as far as the list is asked for it again."""
        oldest = _oldest(self._settings)
        self._added |= self._asked
        if self._looks_back:
            self._looked_back = time.monotonic()
            self._added = {mark: at for mark, at in self._added.items() if at >= oldest}

    def close(self) -> None:
        """Do nothing: each request is one of its own."""

    def _is_new(self, document: Document) -> bool:
        text = json.dumps(document, default=str, sort_keys=True)
        mark = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if mark in self._added or mark in self._asked:
            return False
        self._asked[mark] = time_of_vaa(document) or 0
        return True


class SpiedVaas:
    """A guardian's spy, which passes on what it hears and nothing of before.

    The position has the times when nobody listened: such gaps come with their days.
    """

    def __init__(self, spark: SparkSession, settings: Settings, address: str) -> None:
        self._spark, self._settings, self._address = spark, settings, address
        self._stream: SpyStream | None = None
        self._earlier: list[Gap] = []
        self._given = 0

    def news(self, before: Reached | None) -> News | None:
        """Return VAAs that have come and are not kept yet.

        Raises:
            PermalakeError: if the spy does not answer.
        """
        if self._stream is None:
            listened = (before.source or {}).get(LISTENED) if before else None
            listened = listened if isinstance(listened, dict) else {}
            self._earlier = [(first, last) for first, last in listened.get("gaps", ())]
            self._stream = SpyStream(self._address, listened.get("until"))
        heard = self._stream.heard(_AT_ONCE)
        self._given = len(heard)
        if not heard:
            return None
        oldest = _oldest(self._settings)
        gaps = [gap for gap in (*self._earlier, *self._stream.gaps()) if gap[1] >= oldest]
        rows = [(json.dumps({"vaa": base64.b64encode(vaa.raw).decode()}), _SPY, None) for vaa in heard]
        documents = vaa_files.of_json_lines(of_rows(self._spark, rows, LINES), _SPY)
        return News(documents, {LISTENED: {"until": heard[-1].at, "gaps": gaps}})

    def keep(self) -> None:
        """Let go of what was added."""
        if self._stream is not None:
            self._stream.drop(self._given)
        self._given = 0

    def close(self) -> None:
        """End the stream."""
        if self._stream is not None:
            self._stream.close()


def _oldest(settings: Settings) -> int:
    """Return when the oldest day begins that the head may hold, in unix seconds."""
    first = _today() - timedelta(days=settings.live.days - 1)
    return int(datetime(first.year, first.month, first.day, tzinfo=UTC).timestamp())


def _today() -> date:
    return datetime.now(UTC).date()
