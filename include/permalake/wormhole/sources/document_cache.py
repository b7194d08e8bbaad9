"""Answers of live services, kept in files below the warehouse: nobody is asked twice for the same.

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
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from datetime import date
from typing import Any

from pyarrow.fs import FileSelector, FileType

from permalake.config import Settings
from permalake.intervals import Span, joined, without
from permalake.net import object_storage

UNDATED = date(1970, 1, 1)
"""The day under which documents lie that belong to no day by their own bytes."""

Document = dict[str, object]
"""A document of a foreign service: a reader checks the type of every value that it uses."""

NoteNews = Callable[[Collection[date]], None]
"""Notes days of which a source has VAAs that it had not before."""
_SPAN = re.compile(r"(\d+)-(\d+)")
_ENDING = ".jsonl.gz"


class DocumentCache:
    """The folder of one service; ``name`` and ``url`` distinguish it from others.

    ``note_news`` is called with days before their first new VAAs are stored: what is stored is no news for
    whoever comes after a failure.
    """

    def __init__(self, settings: Settings, name: str, url: str, note_news: NoteNews = lambda _: None) -> None:
        mark = hashlib.sha256(url.encode()).hexdigest()[:12]
        location = f"{settings.lake.warehouse}/_landing/{name}-{mark}"
        self._files = object_storage.filesystem(location)
        self._root = object_storage.inner_path(location)
        self._scheme = location.partition("://")[0] if object_storage.is_object_store(location) else None
        self._known: dict[date, set[bytes]] = {}
        self._note_news = note_news
        self._days_with_news: set[date] = set()

    # -- Documents -----------------------------------------------------------------------------------

    def add(self, kind: str, documents: Iterable[tuple[date, date, Document]]) -> Counter[date]:
        """Store new documents, given as (day of the folder, day that it gives its VAA, document).

        Returns how many brought a VAA (field ``vaa``) that no document of any kind had, by that second day.
        """
        fresh: dict[date, list[str]] = defaultdict(list)
        news: Counter[date] = Counter()
        for day, dated, document in documents:
            marks = self._known_of(day)
            line = json.dumps(document, default=str, sort_keys=True)
            vaa = document.get("vaa")
            if (mark := _mark(line)) not in marks:
                marks.add(mark)
                fresh[day].append(line)
            if vaa is not None and (mark := _mark(f"vaa {vaa}")) not in marks:
                marks.add(mark)
                news[dated] += 1
        if unnoted := news.keys() - self._days_with_news:
            self._note_news(unnoted)
            self._days_with_news |= unnoted
        for day, lines in fresh.items():
            name = f"{kind}-{day}-{uuid.uuid4().hex[:12]}{_ENDING}"
            text = "".join(f"{line}\n" for line in lines)
            self._put(f"{self._root}/{day}/{name}", gzip.compress(text.encode(), mtime=0))
        return news

    def documents(self, start: date, end: date) -> Iterator[Document]:
        """Yield the documents of all kinds of start..end (inclusive)."""
        for day in self._days():
            for path in self._of("", day) if start <= day <= end else ():
                for line in gzip.decompress(self._get(path)).decode().splitlines():
                    yield json.loads(line)

    def paths(self, kind: str, start: date, end: date) -> list[str]:
        """Files of start..end (inclusive) and the undated ones, as Spark reads them."""
        return [
            f"{self._scheme}://{path}" if self._scheme else path
            for day in self._days()
            if start <= day <= end or day == UNDATED
            for path in self._of(kind, day)
        ]

    def _days(self) -> list[date]:
        return sorted(date.fromisoformat(name) for name in self._names() if _is_day(name))

    def _of(self, kind: str, day: date) -> list[str]:
        """Files of a day; of all kinds if ``kind`` is empty."""
        start = f"{kind}-" if kind else ""
        names = (name for name in self._names(f"{day}") if name.startswith(start))
        return [f"{self._root}/{day}/{name}" for name in sorted(names) if name.endswith(_ENDING)]

    def _names(self, folder: str = "") -> list[str]:
        selector = FileSelector(f"{self._root}/{folder}".rstrip("/"), allow_not_found=True)
        return [info.base_name for info in self._files.get_file_info(selector)]

    def _known_of(self, day: date) -> set[bytes]:
        marks = self._known.get(day)
        if marks is None:
            marks = self._known[day] = set()
            for path in self._of("", day):
                for line in gzip.decompress(self._get(path)).decode().splitlines():
                    marks.add(_mark(line))
                    marks.add(_mark(f"vaa {json.loads(line).get('vaa')}"))
        return marks

    # -- What was listed -----------------------------------------------------------------------------

    def missing(self, kind: str, span: Span) -> list[Span]:
        """Return the parts of a span (unix seconds) that have not been listed."""
        return without(span, self._listed(kind))

    def covered(self, kind: str, span: Span) -> list[Span]:
        """Return the parts of a span that have been listed."""
        spans = [(max(span[0], a), min(span[1], b)) for a, b in self._listed(kind)]
        return [(a, b) for a, b in spans if a < b]

    def cover(self, kind: str, span: Span) -> None:
        """Record that a span has been listed and its documents are stored.

        The record is the name of a file, so that concurrent runs lose nothing of each other.
        """
        if span[0] >= span[1]:
            return
        self._put(f"{self._root}/listed-{kind}/{span[0]}-{span[1]}", b"")
        for earlier in self._noted(kind):
            if earlier != span and span[0] <= earlier[0] and earlier[1] <= span[1]:
                self._drop(f"{self._root}/listed-{kind}/{earlier[0]}-{earlier[1]}")

    def _listed(self, kind: str) -> list[Span]:
        return joined(self._noted(kind))

    def _noted(self, kind: str) -> list[Span]:
        spans = map(_SPAN.fullmatch, self._names(f"listed-{kind}"))
        return [(int(span[1]), int(span[2])) for span in spans if span]

    def _drop(self, path: str) -> None:
        with suppress(FileNotFoundError):  # another run was faster
            self._files.delete_file(path)

    # -- Small notes ---------------------------------------------------------------------------------

    def read(self, name: str) -> Any:
        """Read a note; return None when there is none."""
        path = f"{self._root}/{name}"
        there = self._files.get_file_info(path).type == FileType.File
        return json.loads(self._get(path)) if there else None

    def write(self, name: str, value: Any) -> None:
        """Replace a note."""
        self._put(f"{self._root}/{name}", json.dumps(value).encode())

    def _get(self, path: str) -> bytes:
        with self._files.open_input_file(path) as file:
            return bytes(file.read())

    def _put(self, path: str, content: bytes) -> None:
        """Write a file whole: a reader sees the old one or the new one."""
        if self._scheme:
            self._write(path, content)  # an object appears when it is complete
            return
        self._files.create_dir(path.rpartition("/")[0])
        aside = f"{path}.{uuid.uuid4().hex[:8]}"
        self._write(aside, content)
        self._files.move(aside, path)

    def _write(self, path: str, content: bytes) -> None:
        with self._files.open_output_stream(path, compression=None) as file:
            file.write(content)


def _mark(text: str) -> bytes:
    # A service may send half a surrogate pair.
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _is_day(name: str) -> bool:
    try:
        date.fromisoformat(name)
    except ValueError:
        return False
    return len(name) == len("2024-03-10")
