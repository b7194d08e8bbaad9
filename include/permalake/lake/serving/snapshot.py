"""One published state for a server: every table's data files with their dates and column bounds.

The bounds come from the Iceberg manifests, which are read once per publication, and only for tables that it
moved.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table as IcebergTable
from pyiceberg.types import IntegerType, LongType, NestedField, TimestamptzType
from sqlalchemy import Connection

from permalake.contracts import Table
from permalake.contracts.namespaces import Namespaces
from permalake.lake.catalog import open_table
from permalake.lake.counts import day_of, files
from permalake.lake.published import TableName, last_publication, state_in

Bounds = tuple[int, int]
_NAMED_MILESTONES = 200
_UNBOUNDED = (-(2**63), 2**63 - 1)


@dataclass(frozen=True, slots=True)
class ServedFile:
    """A data file: its location, the day of its rows, and the inclusive bounds of integers and times.

    Times are in microseconds since 1970; ``size`` is in bytes.
    """

    location: str
    day: date
    rows: int
    bounds: Mapping[str, Bounds]
    size: int


@dataclass(frozen=True, slots=True)
class Scan:
    """The part of a table that a query has to read; the statement still filters rows itself.

    ``first``, ``last``: dates, both inclusive. ``days``: single dates. ``milestones``: milestone indices;
    a file none of which lies within its bounds is not opened. None does not prune.
    """

    first: date | None = None
    last: date | None = None
    days: Collection[date] | None = None
    milestones: Collection[int] | None = None

    def keeps(self, file: ServedFile) -> bool:
        """Return whether a file may hold rows of this scan."""
        if (self.first and file.day < self.first) or (self.last and file.day > self.last):
            return False
        if self.days is not None and file.day not in self.days:
            return False
        bounds = file.bounds.get("milestone_index")
        if self.milestones is None or bounds is None:
            return True
        return any(bounds[0] <= index <= bounds[1] for index in self.milestones)

    @property
    def is_empty(self) -> bool:
        """Whether no row can be found."""
        return (self.days is not None and not self.days) or (
            self.milestones is not None and not self.milestones
        )

    @property
    def is_lookup(self) -> bool:
        """Whether it names the places of its rows, rather than a range or all."""
        return self.days is not None or self.milestones is not None

    @property
    def condition(self) -> str:
        """SQL that lets a reader skip row groups; empty where it would not."""
        if not self.milestones or len(self.milestones) > _NAMED_MILESTONES:
            return ""
        return (
            f" WHERE milestone_index IN ({', '.join(str(int(milestone)) for milestone in self.milestones)})"
        )


EVERYTHING = Scan()
NOTHING = Scan(days=frozenset())


@dataclass(frozen=True)
class ServedTable:
    """A table in one state: its contract, the Iceberg field id of each column, and its data files by day."""

    contract: Table
    location: str
    field_ids: Mapping[str, int]
    files: tuple[ServedFile, ...]
    is_uniform: bool
    """Whether all files have the contract's columns by name: the table never had another schema."""

    def kept(self, scan: Scan) -> list[ServedFile]:
        """Return the files that a scan has to read, by day."""
        files: Iterable[ServedFile] = self.files
        if scan.milestones is not None:
            files = self._at(scan.milestones)
        return [file for file in files if scan.keeps(file)]

    def _at(self, milestones: Collection[int]) -> Iterator[ServedFile]:
        """Yield the files with one of these milestones within their bounds: a lookup must not walk all."""
        sorted_milestones = np.array(sorted(milestones), np.int64)
        first, last = self._bounds
        held = np.searchsorted(sorted_milestones, last, "right") > np.searchsorted(
            sorted_milestones, first, "left"
        )
        return (self.files[at] for at in np.flatnonzero(held))

    @cached_property
    def digests(self) -> Mapping[date, str]:
        """A key of each day's files, which never change."""
        hashes: dict[date, hashlib._Hash] = {}
        for file in self.files:
            hashes.setdefault(file.day, hashlib.sha256()).update(f"{file.location}\n".encode())
        return {day: digest.hexdigest()[:32] for day, digest in hashes.items()}

    @cached_property
    def _bounds(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First and last milestone of each file; of a file without bounds, all."""
        bounds = [file.bounds.get("milestone_index", _UNBOUNDED) for file in self.files]
        pairs = np.array(bounds, np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]


@dataclass(frozen=True, slots=True)
class LakeSnapshot:
    """All tables as of one publication; ``publication`` is its number, 0 in a lake without any.

    ``head_days``: the days of a live head whose rows the tables have beside the published ones; mostly none.
    ``memory`` keeps what requests have derived from the whole state; it ends with it.
    """

    publication: int
    tables: Mapping[TableName, ServedTable]
    head_days: frozenset[date] = frozenset()
    memory: dict[tuple[str, str], Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def has_head(self) -> bool:
        """Whether the tables have rows of a live head."""
        return bool(self.head_days)

    def table(self, network: str, name: str) -> ServedTable | None:
        """Return a table; None where the lake has none of that name."""
        return self.tables.get((network, name))

    def networks(self) -> set[str]:
        """Return the namespaces that the lake holds."""
        return {network for network, _ in self.tables}

    def locations(self, network: str, name: str, scan: Scan = EVERYTHING) -> list[str]:
        """Return the data files of a table that a scan has to read, by day."""
        table = self.table(network, name)
        return [file.location for file in table.kept(scan)] if table else []

    def days(self, network: str, name: str) -> list[date]:
        """Return the days of which a table has rows, in order."""
        table = self.table(network, name)
        return sorted({file.day for file in table.files}) if table else []


def take_snapshot(
    connection: Connection, namespaces: Namespaces, previous: LakeSnapshot | None = None
) -> LakeSnapshot:
    """Read the published state; tables that ``previous`` has at the same place are taken from there.

    The publication's number and all pointers come from one transaction, which ``connection`` is in.
    """
    publication = last_publication(connection)
    if previous and publication == previous.publication:
        return previous
    tables: dict[TableName, ServedTable] = {}
    for (network, name), location in state_in(connection).items():
        contract = namespaces(network).tables.get(name)
        if contract is None or location is None:
            continue
        before = previous.tables.get((network, name)) if previous else None
        tables[network, name] = (
            before if before and before.location == location else read_table(contract, location)
        )
    return LakeSnapshot(publication, tables)


def read_table(contract: Table, location: str) -> ServedTable:
    """Return the table of a metadata file, with its data files."""
    table = open_table(location)
    ids = {field.name: field.field_id for field in table.schema().fields}
    data_files = sorted(_files(table), key=lambda file: (file.day, file.location))
    is_uniform = len(table.metadata.schemas) == 1 and set(contract.names) <= ids.keys()
    return ServedTable(contract, location, ids, tuple(data_files), is_uniform)


def _files(table: IcebergTable) -> Iterator[ServedFile]:
    kinds = IntegerType | LongType | TimestamptzType
    bounded = [field for field in table.schema().fields if isinstance(field.field_type, kinds)]
    for file in files(table):
        bounds = {field.name: bound for field in bounded if (bound := _bounds(file, field))}
        yield ServedFile(file.file_path, day_of(file), file.record_count, bounds, file.file_size_in_bytes)


def _bounds(file: DataFile, field: NestedField) -> Bounds | None:
    lower = (file.lower_bounds or {}).get(field.field_id)
    upper = (file.upper_bounds or {}).get(field.field_id)
    if lower is None or upper is None:
        return None
    return int(from_bytes(field.field_type, lower)), int(from_bytes(field.field_type, upper))  # type: ignore[arg-type]
