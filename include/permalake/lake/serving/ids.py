"""An index from ids to the milestones (or days) whose rows hold them, derived from the published files.

Data files lie by day, and rows in them by milestone, so an id alone says nothing about its place. For each
column that a table contract lists in ``lookups``, this index holds pairs of a 64-bit hash of the value and
the row's milestone (in tables without milestones: its day, as days since 1970). It lives beside the server,
not in the lake: it can be rebuilt at any time, and costs the builds nothing.

It gives places to look at, never answers. An entry of a row that a later publication removed, or of another
value with the same hash, only makes a query read a milestone in vain, so nothing is ever deleted: a day that
is published again is added again.

A damaged index is built again: whatever cannot be read is named in the log, and counts as not indexed.

Pairs are kept in segments, sorted arrays on disk that are memory-mapped. Segments of about one size are
merged, so that there are few of them, and each pair is rewritten a handful of times (a log-structured merge
tree with tiers of four).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from permalake.errors import PermalakeError

_FORMAT = 1
_FAN = 4
_MANIFEST = "index.json"

_LOG = logging.getLogger(__name__)

Pairs = tuple[NDArray[np.uint64], NDArray[np.int32]]


def hashed(value: str) -> int:
    """Return the hash of a value; DuckDB's ``md5_number_lower`` is the same."""
    return int.from_bytes(hashlib.md5(value.encode(), usedforsecurity=False).digest()[8:], "little")


class UnwritableIndexError(PermalakeError):
    """Raised if the folder of an index cannot be written."""


@dataclass(frozen=True)
class Segment:
    """Pairs sorted by hash, memory-mapped."""

    name: str
    keys: NDArray[np.uint64]
    places: NDArray[np.int32]

    @property
    def level(self) -> int:
        """Tier of its size: segments of one level are within a factor of four."""
        return max(len(self.keys), 1).bit_length() // 2

    def find(self, key: np.uint64) -> NDArray[np.int32]:
        """Return the places of a hash."""
        begin, end = self.keys.searchsorted(key, "left"), self.keys.searchsorted(key, "right")
        return self.places[begin:end]


class IdIndex:
    """The index of one column of one table, in a folder of its own.

    Several servers may share the folder: changes are made under a lock, and a segment that one of them
    removes stays readable for the others that have it open.

    Raises:
        PermalakeError: if the folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._segments: tuple[Segment, ...] = ()
        self._days: dict[str, str] = {}
        with self._written_alone():
            self._load()

    def find(self, value: str) -> list[int]:
        """Return the places where the value may be, in order."""
        key = np.uint64(hashed(value))
        places: set[int] = set()
        for segment in self._segments:
            places.update(segment.find(key).tolist())
        return sorted(places)

    def missing(self, days: Mapping[date, str]) -> list[date]:
        """Return the days that are not indexed as they are; ``days``: each with a digest of its files.

        What other servers have added meanwhile counts.
        """
        self._load()
        return sorted(day for day, digest in days.items() if self._days.get(day.isoformat()) != digest)

    def add(self, days: Mapping[date, str], pairs: Pairs) -> None:
        """Add the pairs of some days, which count as indexed from now on.

        Raises:
            PermalakeError: if the folder cannot be written.
        """
        with self._written_alone():
            self._load()
            segments = list(self._segments)
            if len(pairs[0]):
                segments.append(self._written(*_sorted(*pairs)))
            self._segments = self._merged(segments)
            self._days |= {day.isoformat(): digest for day, digest in days.items()}
            self._store()

    def _merged(self, segments: list[Segment]) -> tuple[Segment, ...]:
        while crowd := _crowd(segments):
            keys = np.concatenate([segment.keys for segment in crowd])
            places = np.concatenate([segment.places for segment in crowd])
            merged = self._written(*_sorted(keys, places))
            segments = [segment for segment in segments if segment not in crowd] + [merged]
        return tuple(segments)

    def _written(self, keys: NDArray[np.uint64], places: NDArray[np.int32]) -> Segment:
        name = uuid.uuid4().hex
        for_keys, for_places = self._files(name)
        _save(for_keys, keys)
        _save(for_places, places)
        return self._opened(name)

    def _files(self, name: str) -> tuple[Path, Path]:
        return self._folder / f"{name}.keys.npy", self._folder / f"{name}.places.npy"

    def _opened(self, name: str) -> Segment:
        keys, places = (_mapped(file) for file in self._files(name))
        if len(keys) != len(places):
            raise _DamagedFileError(self._files(name)[1], f"{len(places)} places of {len(keys)} keys")
        return Segment(name, keys, places)

    def _load(self) -> None:
        """Take what the folder holds; if a part of it cannot be read, go on with what was read before."""
        opened = {segment.name: segment for segment in self._segments}
        try:
            names, days = _manifest(self._folder / _MANIFEST)
            self._segments = tuple(opened.get(name) or self._opened(name) for name in names)
            self._days = days
        except _DamagedFileError as error:
            _LOG.warning("%s is damaged (%s): what is missing is indexed again", error.file, error)

    def _store(self) -> None:
        names = [segment.name for segment in self._segments]
        text = json.dumps({"format": _FORMAT, "segments": names, "days": self._days})
        draft = self._folder / f"{_MANIFEST}.new"
        with draft.open("w") as written:
            written.write(text)
            _sync(written)
        draft.replace(self._folder / _MANIFEST)
        for file in self._folder.glob("*.npy"):
            if file.name.partition(".")[0] not in names:
                file.unlink()

    @contextmanager
    def _written_alone(self) -> Iterator[None]:
        """Keep other processes out of the folder, and say what cannot be written."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with (self._folder / ".lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield
        except OSError as error:
            raise UnwritableIndexError(
                f"the index of ids cannot be written: {error.filename or self._folder}: {error.strerror}; "
                "free space, or set PERMALAKE_HOME to a folder that can be written"
            ) from None


class _DamagedFileError(Exception):
    """Raised for a file of an index that cannot be read."""

    def __init__(self, file: Path, reason: str) -> None:
        super().__init__(reason)
        self.file = file


def _save(file: Path, values: NDArray[Any]) -> None:
    with file.open("wb") as written:
        np.save(written, values)
        _sync(written)


def _mapped(file: Path) -> NDArray[Any]:
    try:
        values: NDArray[Any] = np.load(file, mmap_mode="r")
    except (OSError, ValueError, EOFError) as error:
        raise _DamagedFileError(file, str(error)) from None
    # numpy takes several times as long for a lookup in its own class of mapped arrays.
    return values.view(np.ndarray)


def _manifest(file: Path) -> tuple[list[str], dict[str, str]]:
    """Return the names of the segments and the digests of the days; nothing of an earlier format."""
    if not file.exists():
        return [], {}
    try:
        document = json.loads(file.read_bytes())
        if document["format"] != _FORMAT:
            return [], {}
        return list(document["segments"]), dict(document["days"])
    except (ValueError, TypeError, KeyError) as error:
        raise _DamagedFileError(file, f"{type(error).__name__}: {error}") from None


def _sync(file: IO[Any]) -> None:
    """Write a file to its disk, before another one names it."""
    file.flush()
    os.fsync(file.fileno())


def _sorted(keys: NDArray[np.uint64], places: NDArray[np.int32]) -> Pairs:
    """Return the distinct pairs in order."""
    order = np.lexsort((places, keys))
    keys, places = keys[order], places[order]
    new = np.ones(len(keys), bool)
    new[1:] = (keys[1:] != keys[:-1]) | (places[1:] != places[:-1])
    return keys[new], places[new]


def _crowd(segments: Sequence[Segment]) -> list[Segment]:
    """Return the segments of the smallest level that has too many; none if no level has."""
    for level in sorted({segment.level for segment in segments}):
        crowd = [segment for segment in segments if segment.level == level]
        if len(crowd) >= _FAN:
            return crowd
    return []
