"""Observations as they come: from files that grow, and from Wormholescan's list.

A spy of signed VAAs has none. Those that a source misses come with the day: a head goes on without them.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession

from permalake.config import Settings
from permalake.config.networks import WormholeSettings
from permalake.net.http import RequestRejectedError, UnavailableError
from permalake.spark.frames import of_rows
from permalake.wormhole.sources import observation_files, observation_service
from permalake.wormhole.sources.document_cache import Document
from permalake.wormhole.sources.file_tail import FileTail
from permalake.wormhole.sources.growing_vaas import LINES
from permalake.wormhole.sources.wormhole_source import is_live

POSITION = "observations"
"""Member of ``Reached.source``: how far the files of observations were read."""
_LATE_SECONDS = 60
"""The list is sorted by the time of indexing; several writers of the explorer may be seconds apart."""
_LOG = logging.getLogger("permalake")


@dataclass(frozen=True)
class ReceivedObservations:
    """Observations that have come, as ``observation_files.read`` has them, and how far files were read."""

    rows: DataFrame
    position: Mapping[str, Any]


class GrowingObservations(Protocol):
    """A source of observations that is asked again and again; one may come twice."""

    def news(self, position: Mapping[str, Any]) -> ReceivedObservations | None:
        """Return what has come since a position; None if that is nothing."""

    def keep(self) -> None:
        """Take note that the last news were added."""


def growing_observations(
    spark: SparkSession, settings: Settings, section: WormholeSettings
) -> GrowingObservations:
    """Return the configured sources of observations, which may be none.

    Raises:
        ConfigError: if a path does not exist.
    """
    sources: list[GrowingObservations] = []
    if settings.live.spy is None and section.observations is not None:
        observation_files.files_of(section.observations)
        sources.append(_ObservationFiles(spark, section.observations))
    if settings.live.spy is None and is_live(section) and section.observation_requests:
        sources.append(_ListedObservations(spark, section))
    return _Together(sources)


class _Together:
    def __init__(self, sources: list[GrowingObservations]) -> None:
        self._sources = sources

    def news(self, position: Mapping[str, Any]) -> ReceivedObservations | None:
        every_news = [
            source_news for source in self._sources if (source_news := source.news(position)) is not None
        ]
        if not every_news:
            return None
        positions = {name: mark for source_news in every_news for name, mark in source_news.position.items()}
        return ReceivedObservations(
            reduce(DataFrame.unionByName, (source_news.rows for source_news in every_news)), positions
        )

    def keep(self) -> None:
        for source in self._sources:
            source.keep()


class _ObservationFiles:
    def __init__(self, spark: SparkSession, root: Path) -> None:
        self._spark = spark
        self._tail = FileTail(root, observation_files.listed)

    def news(self, position: Mapping[str, Any]) -> ReceivedObservations | None:
        piece = self._tail.after(position)
        if piece is None:
            return None
        return ReceivedObservations(
            observation_files.read(self._spark, piece[0], observation_files.NAME), piece[1]
        )

    def keep(self) -> None:
        """Do nothing: the position says it."""


class _ListedObservations:
    """The list's newest pages; what was added is remembered as far back as it is asked for again."""

    def __init__(self, spark: SparkSession, section: WormholeSettings) -> None:
        self._spark, self._section = spark, section
        self._added: dict[str, int] = {}
        self._asked: dict[str, int] = {}
        self._serves = True

    def news(self, position: Mapping[str, Any]) -> ReceivedObservations | None:  # noqa: ARG002
        newest = self._newest() if self._serves else []
        if not newest:
            self.keep()
            return None
        rows = [(json.dumps(document, default=str), observation_files.NAME, None) for document in newest]
        lines = of_rows(self._spark, rows, LINES)
        return ReceivedObservations(observation_files.of_lines(lines, self._section.source), {})

    def keep(self) -> None:
        self._added |= self._asked
        self._asked = {}
        oldest = self._since()
        self._added = {mark: at for mark, at in self._added.items() if at >= oldest}

    def _newest(self) -> list[Document]:
        self._asked = {}
        since = self._since()
        try:
            return observation_service.newest(self._section, since, partial(self._is_new, since))
        except RequestRejectedError as error:
            self._serves, reason = error.status != 404, str(error)
        except UnavailableError as error:
            reason = str(error)
        self._asked = {}
        _LOG.info("live wormhole: no observations: %s", reason)
        return []

    def _since(self) -> int:
        now = int(time.time())
        return max((at for at in self._added.values() if at <= now), default=0) - _LATE_SECONDS

    def _is_new(self, since: int, document: Document) -> bool:
        mark, at = json.dumps(document, default=str, sort_keys=True), observation_service.time_of(document)
        if mark in self._added or mark in self._asked or at is None or at < since:
            return False
        self._asked[mark] = at
        return True
