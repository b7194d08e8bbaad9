"""Reading the quarantine: what was refused, of all networks or some days of one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc

from permalake.contracts import QUARANTINE
from permalake.lake.catalog import open_table
from permalake.lake.counts import day_of, files
from permalake.lake.database import Database
from permalake.lake.published import dataset, state

_ORDER = [("network", "ascending"), ("date", "ascending"), ("reason", "ascending"), ("origin", "ascending")]


def rejected(
    database: Database,
    network: str | None = None,
    day: date | None = None,
    reason: str | None = None,
    origin: str | None = None,
    *,
    columns: Sequence[str] = QUARANTINE.names,
) -> pa.Table:
    """Return quarantine rows with their network, in order of network, date, reason and origin.

    ``columns`` are those that are read, the ones of the order among them.
    """
    filters = {"date": day, "reason": reason, "origin": origin}
    where = pc.scalar(True)
    for name, value in filters.items():
        if value is not None:
            where &= pc.field(name) == value
    tables = []
    for (owner, table), location in sorted(state(database).items()):
        if table == QUARANTINE.name and network in {None, owner}:
            rows = dataset(QUARANTINE, location).to_table(columns=list(columns), filter=where)
            tables.append(rows.add_column(0, "network", pa.array([owner] * rows.num_rows, pa.string())))
    if not tables:
        empty = QUARANTINE.arrow.empty_table().select(columns)
        return empty.add_column(0, "network", pa.array([], pa.string()))
    return pa.concat_tables(tables, promote_options="permissive").sort_by(_ORDER)


def days_with_rejected(database: Database, network: str) -> list[date]:
    """List days with rows in quarantine, from metadata."""
    location = state(database).get((network, QUARANTINE.name))
    return sorted({day_of(file) for file in files(open_table(location))}) if location else []
