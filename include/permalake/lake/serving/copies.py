"""Uncompressed copies of the columns that single rows are read from, memory-mapped beside the id index.

The lake compresses columns in row groups: one row costs the reading of its whole group. So a contract's
``copied`` columns are kept a second time, a file per table and day in Arrow's file format, of which a read
touches the pages of one row. Servers and their workers share these pages in the system's cache.

Copies are derived: each is named after the data files that it was made from, whoever lacks one reads the
lake, and the folder may be removed at any time.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from permalake.contracts.rows import Row
from permalake.lake.serving.index import EPOCH, has_milestones
from permalake.lake.serving.snapshot import LakeSnapshot, Scan, ServedTable

_MAPPED = 4096
"""Copies that a process keeps mapped; a mapping takes address space, not memory."""
_FEW = 64
"""Values that are found sooner in a list: a call of Arrow's costs eight microseconds."""
_LOG = logging.getLogger(__name__)

Batches = Callable[[str, str, str, Scan], Iterator[pa.RecordBatch]]
"""Yields the rows of a statement: network, SQL, the table that it reads, and what of it."""
_CopyName = tuple[str, str, date, str]
"""Network, table, day, and the digest of the day's files."""
_PLACE = "_place"


@dataclass(frozen=True, slots=True)
class _Portion:
    """The columns of a batch, the place (milestone, or days since 1970) of each row, and their bounds."""

    columns: Mapping[str, pa.Array]
    places: NDArray[np.int32]
    first: int
    last: int
    ordered: bool

    def find(self, column: str, value: object, place: int) -> Row | None:
        """Return the row at a place with a value; None where there is none."""
        if not self.first <= place <= self.last:
            return None
        begin, end = self._around(place)
        at = _index(self.columns[column].slice(begin, end - begin), value)
        if at < 0:
            return None
        return {name: values[begin + at].as_py() for name, values in self.columns.items()}

    def _around(self, place: int) -> tuple[int, int]:
        """Return the bounds of the rows among which are all of a place."""
        if self.ordered:
            begin = self.places.searchsorted(place, "left")
            return int(begin), int(self.places.searchsorted(place, "right"))
        among = np.flatnonzero(self.places == place)
        return (int(among[0]), int(among[-1]) + 1) if len(among) else (0, 0)


class RowCopies:
    """The copies of one lake's tables in a folder that several servers may share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._mapped: OrderedDict[_CopyName, tuple[_Portion, ...]] = OrderedDict()

    def find(
        self, network: str, table: ServedTable, scan: Scan, column: str, value: object
    ) -> list[Row] | None:
        """Return the rows of a scan with a value; None where a copy that is needed is not there.

        ``scan`` names milestones, in tables without milestones days. A place has at most one row of a value.
        """
        rows = []
        for day, place in _days(table, scan):
            portions = self._opened(network, table, day)
            if portions is None:
                return None
            rows += [row for portion in portions if (row := portion.find(column, value, place))]
        return rows

    def follow(self, snapshot: LakeSnapshot, batches: Batches, may_continue: Callable[[], bool]) -> None:
        """Make the copies that a state needs, the newest days first, and remove those of other states.

        One process of all makes them. ``may_continue`` is asked before each.
        """
        with self._alone() as alone:
            if not alone:
                return
            for (network, _), table in sorted(snapshot.tables.items()):
                if not table.contract.copied:
                    continue
                files = {self._file(network, table, day): day for day in sorted(table.digests, reverse=True)}
                for file in set(self._folder_of(network, table).glob("*")) - files.keys():
                    file.unlink(missing_ok=True)
                for file, day in files.items():
                    if not may_continue():
                        return
                    if not file.exists():
                        self._write(file, network, table, day, batches)

    def _write(self, file: Path, network: str, table: ServedTable, day: date, batches: Batches) -> None:
        columns = ", ".join(table.contract.copied)
        place = "milestone_index" if has_milestones(table) else f"date - DATE '{EPOCH}'"
        name = table.contract.name
        sql = f"SELECT {columns}, CAST({place} AS INTEGER) AS {_PLACE} FROM {name}"  # noqa: S608
        draft = file.with_suffix(".new")
        file.parent.mkdir(parents=True, exist_ok=True)
        writer = None
        with draft.open("wb") as sink:
            for batch in batches(network, sql, name, Scan(days=frozenset({day}))):
                writer = writer or pa.ipc.new_file(sink, batch.schema)
                writer.write_batch(batch)
            if writer is None:
                return
            writer.close()
            sink.flush()
            os.fsync(sink.fileno())
        draft.replace(file)

    def _opened(self, network: str, table: ServedTable, day: date) -> tuple[_Portion, ...] | None:
        """Return the batches of a copy; None where there is none."""
        name = (network, table.contract.name, day, table.digests[day])
        if (kept := self._mapped.get(name)) is not None:
            return kept
        file = self._file(network, table, day)
        try:
            with pa.memory_map(str(file)) as source:
                opened = pa.ipc.open_file(source)
                batches = [opened.get_batch(at) for at in range(opened.num_record_batches)]
        except pa.ArrowInvalid as error:
            _LOG.warning("%s is damaged (%s): it is copied again", file, error)
            with suppress(OSError):
                file.unlink()
            return None
        except OSError:
            return None
        portions = tuple(_portion(batch) for batch in batches if len(batch))
        self._mapped[name] = portions
        if len(self._mapped) > _MAPPED:
            self._mapped.popitem(last=False)
        return portions

    def _file(self, network: str, table: ServedTable, day: date) -> Path:
        return self._folder_of(network, table) / f"{day}.{table.digests[day]}.arrow"

    def _folder_of(self, network: str, table: ServedTable) -> Path:
        return self._folder / network / f"{table.contract.name}.rows"

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        """Keep other processes from making copies; False where one makes them, or the folder is read-only."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            lock = (self._folder / ".copies.lock").open("w")
        except OSError as error:
            _LOG.warning("single rows are read from the lake: %s: %s", self._folder, error.strerror)
            yield False
            return
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True


def _index(values: pa.Array, value: object) -> int:
    """Return where a value stands first; -1 where it does not."""
    if len(values) <= _FEW:
        among = values.to_pylist()
        return among.index(value) if value in among else -1
    return int(pc.index(values, value).as_py())


def _portion(batch: pa.RecordBatch) -> _Portion:
    places = batch.column(_PLACE).to_numpy()
    ordered = bool((places[1:] >= places[:-1]).all())
    columns = {name: batch.column(name) for name in batch.schema.names if name != _PLACE}
    return _Portion(columns, places, int(places.min()), int(places.max()), ordered)


def _days(table: ServedTable, scan: Scan) -> Iterator[tuple[date, int]]:
    """Yield the days whose files may have rows of a scan, each with a place."""
    if not has_milestones(table):
        days = [day for day in scan.days or () if day in table.digests]
        yield from ((day, day.toordinal() - EPOCH.toordinal()) for day in days)
        return
    for index in scan.milestones or ():
        for day in dict.fromkeys(file.day for file in table.kept(Scan(milestones=(index,)))):
            yield day, index
