"""Deriving signed days again from their own raw bytes, and comparing each table with what was signed.

A domain says how (:class:`Derivation`); here its tables are compared. Signed digests tell that a copy is what
the publisher signed; this tells that what it signed follows from the bytes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from permalake.contracts import Table
from permalake.errors import PermalakeError
from permalake.transparency.digest import table_digest
from permalake.transparency.documents import Manifest
from permalake.transparency.manifest import Rows
from permalake.transparency.row_differences import differing_rows, key_text, value_text


class UnderivedError(PermalakeError):
    """Raised at the first thing that does not follow from a day's raw bytes; it names table and key."""


@dataclass(frozen=True)
class RawDay:
    """A day of a copy, whose tables have the digests of its manifest.

    ``rows`` returns a table's rows of the day, none where it has no such rows.
    """

    date: date
    manifest: Manifest
    rows: Rows


class Derivation(Protocol):
    """Derives days of one network again, in their order.

    ``tables``: those that it derives.
    """

    tables: tuple[str, ...]

    def derive(self, day: RawDay, before: Callable[[], RawDay | None], tables: TableFolder) -> None:
        """Write the tables of a day that follow from its raw bytes.

        ``before`` returns the last day before that has input, for what a day refers to; None where the copy
        lacks it.

        Raises:
            UnderivedError: if the bytes do not hold what they claim.
        """

    def proven(self) -> Iterator[str]:
        """Yield what the derivation of all days has proven, in words."""

    def rests_on(self) -> Iterator[str]:
        """Yield whose keys that rests on, in words."""

    def not_covered(self) -> Iterator[str]:
        """Yield what it does not cover, in words."""


class TableFolder:
    """Derived rows of a day, a file per table: a day need not fit into memory."""

    def __init__(self, folder: Path, contracts: Mapping[str, Table]) -> None:
        self._folder = folder
        self._contracts = contracts
        self._writers: dict[str, pq.ParquetWriter] = {}

    def add(self, name: str, rows: pa.Table) -> None:
        """Add rows of a table."""
        schema = self._contracts[name].nullable
        if name not in self._writers:
            self._writers[name] = pq.ParquetWriter(
                self._folder / f"{name}.parquet", schema, compression="lz4"
            )
        self._writers[name].write_table(rows.select(schema.names).cast(schema))

    def close(self) -> None:
        """End the files, so that they can be read."""
        for writer in self._writers.values():
            writer.close()

    def rows(self, name: str) -> ds.Dataset:
        """Return the derived rows of a table."""
        if name not in self._writers:
            return ds.dataset(self._contracts[name].nullable.empty_table())
        return ds.dataset(self._folder / f"{name}.parquet", format="parquet")


def check_derived(
    derivation: Derivation,
    day: RawDay,
    before: Callable[[], RawDay | None],
    contracts: Mapping[str, Table],
    network: str,
) -> None:
    """Derive a day again and compare its tables with those of the copy.

    Raises:
        UnderivedError: at the first difference.
    """
    signed = day.manifest["tables"]
    with tempfile.TemporaryDirectory() as folder:
        tables = TableFolder(Path(folder), contracts)
        try:
            derivation.derive(day, before, tables)
        finally:
            tables.close()
        for name in derivation.tables:
            contract = contracts[name]
            rows = tables.rows(name)
            is_empty = name not in signed and not rows.count_rows()
            if is_empty or (name in signed and table_digest(rows, contract).hex == signed[name]["digest"]):
                continue
            where = f"{network}.{name} of {day.date}"
            raise UnderivedError(f"{where}: {first_difference(contract, day.rows(name), rows)}")


def first_difference(contract: Table, there: ds.Dataset, derived: ds.Dataset) -> str:
    """Return in words the first row, in the digest's order, that does not follow from the raw bytes."""
    said, follows = differing_rows(there, derived, contract)
    if said and follows:
        name = next(column for column in said if said[column] != follows[column])
        values = f"is {value_text(said[name])}, from the raw bytes follows {value_text(follows[name])}"
        return f"{key_text(said, contract)}: {name} {values}"
    if follows:
        return f"the row {key_text(follows, contract)} is missing, which follows from the raw bytes"
    if said:
        return f"the row {key_text(said, contract)} does not follow from the raw bytes"
    return f"{there.count_rows():,} rows are there, {derived.count_rows():,} follow from the raw bytes"
