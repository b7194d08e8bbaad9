"""The published lake, for reading: rows, days, quarantine and pointers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from sqlalchemy import func, select

from permalake.config import Settings
from permalake.contracts import QUARANTINE
from permalake.contracts.namespaces import Namespaces
from permalake.intervals import ranges
from permalake.lake import staging, stale
from permalake.lake.catalog import locations, open_table
from permalake.lake.counts import day_of, files
from permalake.lake.database import Database
from permalake.lake.published import (
    AsOf,
    LakeState,
    check_history,
    dataset,
    last_publication,
    past_state,
    state,
)
from permalake.lake.query import run_query, unknown_table
from permalake.lake.state import PUBLISHED, days
from permalake.lake.status import DayStatus, status

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ORDER = [("network", "ascending"), ("date", "ascending"), ("reason", "ascending"), ("origin", "ascending")]


class Reader:
    """The lake as readers see it. Nothing here changes it."""

    def __init__(self, settings: Settings, database: Database, namespaces: Namespaces) -> None:
        self._settings = settings
        self._database = database
        self._namespaces = namespaces

    def query(self, sql: str, as_of: AsOf | None = None) -> pa.Table:
        """Return the rows of a DuckDB query over the published state."""
        return run_query(self._database, self._namespaces, sql, as_of).table()

    def publication(self, as_of: AsOf | None = None) -> int:
        """Return the number of the last publication, of all or of those up to ``as_of``; 0: none."""
        if isinstance(as_of, int):
            return as_of
        with self._database.read() as connection:
            return last_publication(connection, as_of)

    def published(self, as_of: AsOf | None = None) -> LakeState:
        """Return the place of every published table, now or as of a moment, in one read."""
        return state(self._database) if as_of is None else past_state(self._database, self._namespaces, as_of)

    def dataset(
        self,
        network: str,
        name: str,
        first: date = date.min,
        last: date = date.max,
        as_of: AsOf | None = None,
    ) -> ds.Dataset:
        """Return the rows of a table from ``first`` to ``last``, read when they are used.

        Raises:
            PermalakeError: if there is no such table, or maintenance has forgotten what it was.
        """
        published = self.published(as_of)
        if (network, name) not in published:
            raise unknown_table(f"{network}.{name}", published)
        if as_of is not None:
            check_history(self._database, [(network, name)], as_of)
        contract = self._namespaces(network).tables[name]
        return dataset(contract, published[network, name], first, last)

    def table(self, spark: SparkSession, network: str, name: str) -> DataFrame:
        """Return a published table in Spark."""
        staging.bind(spark, self._settings, PUBLISHED)
        return spark.read.table(staging.full_name(PUBLISHED, network, name))

    def locations(self, network: str) -> dict[str, str]:
        """Return the published metadata location of every table, in one read."""
        with self._database.read() as connection:
            return locations(connection, PUBLISHED, network)

    def status(self, network: str | None = None, *, with_never_built: bool = False) -> list[DayStatus]:
        """Return every day that the lake knows of, in order of network and date; see :func:`status`."""
        return status(self._database, network, with_never_built=with_never_built)

    def stale(self, network: str) -> list[tuple[date, date]]:
        """Return the stale days in order, as ranges."""
        with self._database.read() as connection:
            return ranges(stale.listed(connection, network))

    def rejected(
        self,
        network: str | None = None,
        day: date | None = None,
        reason: str | None = None,
        origin: str | None = None,
        columns: Sequence[str] = QUARANTINE.names,
    ) -> pa.Table:
        """Return quarantine rows with their network, in order of network, date, reason and origin.

        Filters that are None let everything through. ``columns`` are those that are read, the ones of the
        order among them; without ``raw`` no input is read, however large the quarantine is.
        """
        where = pc.scalar(True)
        for name, value in {"date": day, "reason": reason, "origin": origin}.items():
            if value is not None:
                where &= pc.field(name) == value
        tables = []
        for (owner, table), location in sorted(self.published().items()):
            if table == QUARANTINE.name and network in {None, owner}:
                rows = dataset(QUARANTINE, location).to_table(columns=list(columns), filter=where)
                tables.append(rows.add_column(0, "network", pa.array([owner] * rows.num_rows, pa.string())))
        if not tables:
            empty = QUARANTINE.arrow.empty_table().select(columns)
            return empty.add_column(0, "network", pa.array([], pa.string()))
        return pa.concat_tables(tables, promote_options="permissive").sort_by(_ORDER)

    def days_with_rejected(self, network: str) -> list[date]:
        """Return the days of which something is in quarantine, in order, from metadata."""
        location = self.published().get((network, QUARANTINE.name))
        return sorted({day_of(file) for file in files(open_table(location))}) if location else []

    def quarantined(self, network: str, start: date, end: date) -> int:
        """Return the number of quarantine rows of start..end."""
        with self._database.read() as connection:
            count = connection.execute(
                select(func.sum(days.c.quarantined)).where(
                    days.c.network == network, days.c.date.between(start, end)
                )
            ).scalar()
        return int(count or 0)
