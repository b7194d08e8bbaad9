"""The id indices of a lake's served tables, and how they follow the published state."""

from __future__ import annotations

import fcntl
import logging
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from permalake.contracts import Table
from permalake.lake.serving.ids import IdIndex, UnwritableIndexError, hashed
from permalake.lake.serving.snapshot import LakeSnapshot, Scan, ServedTable

ROWS_AT_ONCE = 4_000_000
EPOCH = date(1970, 1, 1)
_LOG = logging.getLogger(__name__)

Run = Callable[[str, str, str, Scan], pa.Table]
"""Runs a statement: network, SQL, the table that it reads, and what of it."""


class LakeIndex:
    """One :class:`IdIndex` for each column that a served table's contract lists in ``lookups``.

    Where ``folder`` cannot be written, the indices lie in a temporary folder, and are built at each start.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._indices: dict[tuple[str, str, str], IdIndex] = {}

    def find(self, network: str, table: str, column: str, value: str) -> list[int]:
        """Return the milestones (or days since 1970) where a value may be, in order."""
        index = self._indices.get((network, table, column))
        return index.find(value) if index else []

    def update(self, snapshot: LakeSnapshot, run: Run) -> None:
        """Index what ``snapshot`` has and the indices lack; of several servers, one does it for all."""
        with self._one_at_a_time():
            for (network, name), table in sorted(snapshot.tables.items()):
                for column in table.contract.lookups:
                    key = (network, name, column)
                    if key not in self._indices:
                        self._indices[key] = self._opened(Path(network) / f"{name}.{column}")
                    self._follow(network, table, column, run)

    @contextmanager
    def _one_at_a_time(self) -> Iterator[None]:
        """Wait for another server that indexes; where the folder cannot be written there is none."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            lock = (self._folder / ".update.lock").open("w")
        except OSError:
            yield
            return
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _opened(self, place: Path) -> IdIndex:
        try:
            return IdIndex(self._folder / place)
        except UnwritableIndexError as error:
            if self._temporary is not None:
                raise
            self._temporary = tempfile.TemporaryDirectory(prefix="permalake-ids-")
            self._folder = Path(self._temporary.name)
            _LOG.warning("%s; until then it is built in %s at each start", error, self._folder)
            return IdIndex(self._folder / place)

    def _follow(self, network: str, table: ServedTable, column: str, run: Run) -> None:
        name = table.contract.name
        index = self._indices[network, name, column]
        digests = table.digests
        place = "milestone_index" if has_milestones(table) else f"date - DATE '{EPOCH}'"
        key_of = key_function(table.contract, column)
        key = column if key_of else f"md5_number_lower({column})"
        sql = (
            f"SELECT DISTINCT {key} AS key, CAST({place} AS INTEGER) AS place "  # noqa: S608
            f"FROM {name} WHERE {column} IS NOT NULL"
        )
        for days in _portions(table, index.missing(digests)):
            rows = run(network, sql, name, Scan(days=frozenset(days)))
            keys = rows["key"].to_numpy() if key_of is None else _keys(rows["key"], key_of)
            places = rows["place"].to_numpy().astype(np.int32)
            index.add({day: digests[day] for day in days}, (keys.astype(np.uint64), places))
            _LOG.info("%s.%s.%s: indexed to %s", network, name, column, days[-1])


def has_milestones(table: ServedTable) -> bool:
    """Return whether places of a table are milestones; else they are days since 1970."""
    return "milestone_index" in table.contract.names


def scan_of(table: ServedTable, places: list[int]) -> Scan:
    """Return the scan of rows at places of an index."""
    if has_milestones(table):
        return Scan(milestones=places)
    return Scan(days=frozenset(EPOCH + timedelta(days=place) for place in places))


def key_function(contract: Table, column: str) -> Callable[[Any], str] | None:
    """Return what makes the key of a lookup from the column's value; None where it is the value."""
    named = contract.lookup_keys.get(column)
    if named is None:
        return None
    module, _, function = named.partition(":")
    key: Callable[[Any], str] = getattr(import_module(module), function)
    return key


def _keys(values: pa.ChunkedArray, key_of: Callable[[Any], str]) -> NDArray[np.uint64]:
    """Return the hashes of the values' keys."""
    return np.array([hashed(key_of(value)) for value in values.to_pylist()], np.uint64)


def _portions(table: ServedTable, days: list[date]) -> Iterator[list[date]]:
    """Yield the days in portions of about :data:`ROWS_AT_ONCE` rows."""
    rows: dict[date, int] = {}
    for file in table.files:
        rows[file.day] = rows.get(file.day, 0) + file.rows
    portion: list[date] = []
    size = 0
    for day in days:
        if portion and size + rows[day] > ROWS_AT_ONCE:
            yield portion
            portion, size = [], 0
        portion.append(day)
        size += rows[day]
    if portion:
        yield portion
