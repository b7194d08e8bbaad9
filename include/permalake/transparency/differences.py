"""Differences between a day built from a publisher's bytes and the day that the publisher signed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import duckdb
import pyarrow.dataset as ds

from permalake.contracts import Table
from permalake.errors import PermalakeError
from permalake.transparency.copies import ExportCopy, as_signed
from permalake.transparency.digest import table_digest
from permalake.transparency.documents import SignedTable
from permalake.transparency.landed import LandedDay
from permalake.transparency.log import Entry
from permalake.transparency.places import open_place
from permalake.transparency.row_differences import differing_rows, key_text, value_text

Rows = Callable[[str], ds.Dataset]


def first_difference(day: LandedDay, tables: Mapping[str, Table], kind: str, rows: Rows) -> str | None:
    """Return the first difference between a day's tables as built here and as they were signed, in a line.

    ``tables`` are the contracts by name, ``kind`` is ``day`` or ``carried``, and ``rows`` returns a table's
    rows of the day as built here. None: all of them have the digests that were signed. Tables that this
    version does not know are left out.
    """
    names = {name for name, said in day.tables.items() if said["kind"] == kind}
    names |= {name for name, table in tables.items() if table.commit == kind}
    for name in sorted(names):
        table = tables.get(name)
        if table is None:
            continue
        said = day.tables.get(name)
        here = rows(name)
        where = f"{day.network}.{name} of {day.date}"
        if said is None:
            if count := here.count_rows():
                return f"{where}: there are {count:,} rows here, and {day.origin} signed none"
            continue
        signed = as_signed(table, said, f"{day.origin}: {where}")
        made = table_digest(here, signed)
        if made.hex != said["digest"]:
            return (
                f"{where} is not what {day.origin} signed: {made.rows:,} rows here, {said['rows']:,} there"
                f"{_row(day, signed, said, here)}"
            )
    return None


def _row(day: LandedDay, table: Table, said: SignedTable, here: ds.Dataset) -> str:
    """Name the first row that differs, if the publisher still shows its rows."""
    entry = Entry(day.network, day.date.isoformat(), day.document["publication"], day.manifest)
    try:
        with ExportCopy(open_place(day.url)).rows(entry, table, said["digest"]) as there:
            return first_row(here, there, table)
    except (PermalakeError, duckdb.Error, OSError):
        return ""


def first_row(here: ds.Dataset, there: ds.Dataset, table: Table) -> str:
    """Return the first row, in the digest's order, that one side has otherwise or not at all; in words."""
    ours, theirs = differing_rows(here, there, table)
    if ours and theirs:
        name = next(column for column in ours if ours[column] != theirs[column])
        values = f"{value_text(ours[name])} here, {value_text(theirs[name])} there"
        return f"; first at {key_text(ours, table)}: {name} is {values}"
    if ours:
        return f"; first at {key_text(ours, table)}: the row is here alone"
    return f"; first at {key_text(theirs, table)}: the row is there alone" if theirs else ""
