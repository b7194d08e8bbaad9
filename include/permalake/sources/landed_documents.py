"""What live services were asked for, kept in files below the warehouse: nobody is asked twice for the same.

Documents lie by UTC day, as gzip JSON Lines that are never changed once written; a re-listing adds only what
is new. Which spans of time have been listed stands in ``listed-KIND/``. Killed at any moment, whatever
was listed since the last flush is listed again and found to be known.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

import fsspec

from permalake.config import Settings
from permalake.spans import Span, joined, without

UNDATED = date(1970, 1, 1)
"""The day under which documents lie that belong to no day by their own bytes."""

Document = dict[str, Any]

_SPAN = re.compile(r"(\d+)-(\d+)")


class Landing:
    """The folder of one service; ``name`` and ``url`` tell it from others."""

    def __init__(self, settings: Settings, name: str, url: str) -> None:
        mark = hashlib.sha256(url.encode()).hexdigest()[:12]
        self._files, self.root = fsspec.core.url_to_fs(f"{settings.lake.warehouse}/_landing/{name}-{mark}")
        self._remote = "://" in settings.lake.warehouse
        self._known: dict[date, set[bytes]] = {}

    # -- Documents -----------------------------------------------------------------------------------

    def add(self, kind: str, documents: Iterable[tuple[date, date, Document]]) -> Counter[date]:
        """Keep documents that are not there yet, given as (day of the folder, day that it gives its VAA,
        document). Returns how many brought a VAA (field ``vaa``) that no document of any kind had, by that
        second day."""
        fresh: dict[date, list[str]] = defaultdict(list)
        news: Counter[date] = Counter()
        for day, dated, document in documents:
            known = self._known_of(day)
            line = json.dumps(document, default=str, sort_keys=True)
            vaa = document.get("vaa")
            if (mark := _mark(line)) not in known:
                known.add(mark)
                fresh[day].append(line)
            if vaa is not None and (mark := _mark(f"vaa {vaa}")) not in known:
                known.add(mark)
                news[dated] += 1
        for day, lines in fresh.items():
            name = f"{kind}-{day}-{uuid.uuid4().hex[:12]}.jsonl.gz"
            text = "".join(f"{line}\n" for line in lines)
            self._put(f"{self.root}/{day}/{name}", gzip.compress(text.encode(), mtime=0))
        return news

    def paths(self, kind: str, start: date, end: date) -> list[str]:
        """Files of start..end (inclusive) and the undated ones, as Spark reads them."""
        return [
            self._files.unstrip_protocol(path) if self._remote else path
            for day in self._days()
            if start <= day <= end or day == UNDATED
            for path in self._of(kind, day)
        ]

    def _days(self) -> list[date]:
        if not self._files.exists(self.root):
            return []
        names = (path.rstrip("/").rsplit("/", 1)[-1] for path in self._files.ls(self.root, detail=False))
        return sorted(date.fromisoformat(name) for name in names if _is_day(name))

    def _of(self, kind: str, day: date) -> list[str]:
        return sorted(self._files.glob(f"{self.root}/{day}/{kind}-*.jsonl.gz"))

    def _known_of(self, day: date) -> set[bytes]:
        known = self._known.get(day)
        if known is None:
            known = self._known[day] = set()
            for path in self._of("*", day):
                with self._files.open(path, "rb") as file, gzip.open(file, "rt", encoding="utf-8") as lines:
                    for line in lines:
                        known.add(_mark(line.rstrip("\n")))
                        known.add(_mark(f"vaa {json.loads(line).get('vaa')}"))
        return known

    # -- What was listed -----------------------------------------------------------------------------

    def missing(self, kind: str, span: Span) -> list[Span]:
        """What of a span (unix seconds) has not been listed yet."""
        return without(span, self._listed(kind))

    def covered(self, kind: str, span: Span) -> list[Span]:
        """What of a span has been listed."""
        found = [(max(span[0], a), min(span[1], b)) for a, b in self._listed(kind)]
        return [(a, b) for a, b in found if a < b]

    def cover(self, kind: str, span: Span) -> None:
        """A span has been listed; its documents are kept already. It is noted in the name of a file, so that
        runs beside each other forget nothing of each other's."""
        if span[0] >= span[1]:
            return
        self._put(f"{self.root}/listed-{kind}/{span[0]}-{span[1]}", b"")
        for one in self._noted(kind):
            if one != span and span[0] <= one[0] and one[1] <= span[1]:
                self._drop(f"{self.root}/listed-{kind}/{one[0]}-{one[1]}")

    def _listed(self, kind: str) -> list[Span]:
        return joined(self._noted(kind))

    def _noted(self, kind: str) -> list[Span]:
        notes = self._files.glob(f"{self.root}/listed-{kind}/*")
        spans = (_SPAN.fullmatch(path.rsplit("/", 1)[-1]) for path in notes)
        return [(int(span[1]), int(span[2])) for span in spans if span]

    def _drop(self, path: str) -> None:
        with suppress(FileNotFoundError):  # another run was faster
            self._files.rm_file(path)

    # -- Small notes ---------------------------------------------------------------------------------

    def read(self, name: str) -> Any:
        """A note, None when there is none."""
        path = f"{self.root}/{name}"
        return json.loads(self._files.cat_file(path)) if self._files.exists(path) else None

    def write(self, name: str, value: Any) -> None:
        """Replace a note."""
        self._put(f"{self.root}/{name}", json.dumps(value).encode())

    def _put(self, path: str, content: bytes) -> None:
        """Write a file whole: a reader sees the old one or the new one."""
        self._files.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
        if self._remote:
            self._files.pipe_file(path, content)  # an object appears when it is complete
            return
        aside = f"{path}.{uuid.uuid4().hex[:8]}"
        self._files.pipe_file(aside, content)
        Path(aside).replace(path)


def _mark(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _is_day(name: str) -> bool:
    try:
        date.fromisoformat(name)
    except ValueError:
        return False
    return len(name) == len("2024-03-10")
