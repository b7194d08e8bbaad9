"""The Python API of the published lake: tables as Arrow, pandas, Polars or DuckDB, without Spark.

Start with :func:`permalake.open`. pandas, Polars and DuckDB are imported when they are asked for. A test runs
the examples over the lake of ``make demo``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from permalake.config import Settings
from permalake.contracts.sql_text import identifier
from permalake.contracts.views import LakeView
from permalake.domains import domain_of, open_reader
from permalake.errors import PermalakeError
from permalake.lake.duckdb_file import write_duckdb_file
from permalake.lake.published import AsOf

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl

Day = date | str
"""A UTC date, or its text ``YYYY-MM-DD``."""
Moment = datetime | str | int
"""A time, or its text by RFC 3339 (UTC where it names no zone), or the number of a publication."""
LATEST = "latest"
"""``as_of`` of :func:`permalake.open`: the publication that is the last one when the lake is opened."""


class LakeRows:
    """Rows of a table, a view or a query. A table's rows are read each time they are asked for.

    Decimals stay exact, binary columns are bytes, times are UTC. ``columns`` are the names in order.

    >>> rows = lake.table("shimmer.ms_analytics", columns=["milestone_index", "message_count"])
    >>> rows.columns
    ['milestone_index', 'message_count']
    """

    def __init__(self, dataset: ds.Dataset, columns: Sequence[str] | None = None) -> None:
        self._dataset = dataset
        self.columns = list(dataset.schema.names if columns is None else columns)

    def arrow(self) -> pa.Table:
        """Return all rows as an Arrow table, in order of ``date``.

        >>> rows = lake.table("shimmer.ms_analytics", columns=["milestone_index", "message_count"])
        >>> rows.arrow().to_pylist()[0]
        {'milestone_index': 17339, 'message_count': 38}
        """
        return self._dataset.to_table(columns=self.columns)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows batch by batch, for more than memory holds.

        >>> sum(batch.num_rows for batch in lake.table("shimmer.messages").batches())
        81
        """
        yield from self._dataset.to_batches(columns=self.columns)

    def pandas(self) -> pd.DataFrame:
        """Return all rows as a pandas frame.

        Dates and times are ``datetime64``. Decimals are ``decimal.Decimal``, and integers with gaps are
        Python integers, for a float would round them.

        >>> int(lake.table("shimmer.ms_analytics").pandas()["message_count"].sum())
        81
        """
        return self.arrow().to_pandas(date_as_object=False, integer_object_nulls=True)

    def polars(self) -> pl.DataFrame:
        """Return all rows as a Polars frame.

        Raises:
            PermalakeError: if Polars is not installed.

        >>> lake.table("shimmer.ms_analytics").polars()["message_count"].sum()
        81
        """
        try:
            import polars
        except ModuleNotFoundError:
            raise PermalakeError("Polars is not installed; install it with pip install polars") from None
        return polars.DataFrame(self.arrow())

    def duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """Return the rows as a DuckDB relation, which reads no more of the files than a query needs.

        Args:
            connection: Where the relation belongs; DuckDB's default connection if not given, so that
                ``duckdb.sql("SELECT … FROM rows")`` finds a variable ``rows``.

        >>> rows = lake.table("shimmer.ms_analytics", columns=["milestone_index", "message_count"])
        >>> rows.duckdb().filter("message_count > 40").fetchall()
        [(17340, 43)]
        """
        import duckdb

        relation = (connection or duckdb.default_connection()).from_arrow(self._dataset)
        if self.columns == self._dataset.schema.names:
            return relation
        return relation.project(", ".join(identifier(name) for name in self.columns))


class Lake:
    """The published lake. Each call reads one published state, whatever is published meanwhile.

    >>> import permalake
    >>> lake = permalake.open()
    >>> lake.query("SELECT max(date) AS newest FROM shimmer.ms_analytics").arrow().to_pylist()
    [{'newest': datetime.date(2022, 9, 28)}]
    """

    def __init__(self, settings: Settings, as_of: Moment | None = None) -> None:
        self._reader = open_reader(settings)
        # A lake without a publication has nothing to pin.
        self._as_of = (self._reader.publication() or None) if as_of == LATEST else _moment(as_of)

    @property
    def publication(self) -> int:
        """The number of the publication that is read now: the last one, or that of ``as_of``.

        >>> import permalake
        >>> lake.publication == permalake.open(as_of="latest").publication
        True
        """
        return self._reader.publication(self._as_of)

    def tables(self) -> list[str]:
        """Return the names of the published tables and of the views over them, ``NETWORK.table``.

        >>> [name for name in lake.tables() if name.startswith("wormhole.tvl")]
        ['wormhole.tvl_compared', 'wormhole.tvl_daily', 'wormhole.tvl_totals']
        """
        published = self._reader.published(self._as_of)
        views = {
            f"{network}.{view.name}"
            for network in {network for network, _ in published}
            for view in domain_of(network).views
            if all((network, table) in published for table in view.tables)
        }
        return sorted(views | {f"{network}.{table}" for network, table in published})

    def table(
        self,
        name: str,
        *,
        start: Day | None = None,
        end: Day | None = None,
        as_of: Moment | None = None,
        columns: Sequence[str] | None = None,
    ) -> LakeRows:
        """Return rows of a table or view.

        Args:
            name: ``NETWORK.table``, such as ``shimmer.ms_analytics``.
            start: First day, inclusive; without it, from the first one.
            end: Last day, inclusive; without it, up to the last one.
            as_of: Read the table as it was published at that time, or by the publication of that number.
            columns: Columns to read; without them, all.

        Raises:
            PermalakeError: if there is no such table or column, a day or time is malformed, or maintenance
                has forgotten that time.

        >>> day = lake.table("shimmer.ms_analytics", start="2022-09-28", end="2022-09-28")
        >>> day.arrow().num_rows
        2
        >>> lake.table("shimmer.ms_analytics", columns=["messages"])
        Traceback (most recent call last):
        permalake.errors.PermalakeError: shimmer.ms_analytics: no column messages; it has ms_range_id, ...
        """
        network, _, table = name.rpartition(".")
        first, last = _day("start", start, date.min), _day("end", end, date.max)
        moment = self._as_of if as_of is None else _moment(as_of)
        view = next((view for view in domain_of(network).views if view.name == table), None)
        if view is not None:
            rows = self._view(network, view, first, last, moment)
        else:
            rows = self._reader.dataset(network, table, first, last, moment)
        if unknown := [column for column in columns or () if column not in rows.schema.names]:
            columns_there = ", ".join(rows.schema.names)
            raise PermalakeError(f"{name}: no column {', '.join(unknown)}; it has {columns_there}")
        if view is None and (start is not None or end is not None):
            rows = rows.filter((pc.field("date") >= first) & (pc.field("date") <= last))
        return LakeRows(rows, columns)

    def _view(self, network: str, view: LakeView, first: date, last: date, as_of: AsOf | None) -> ds.Dataset:
        of_days = f" WHERE date BETWEEN DATE '{first}' AND DATE '{last}' ORDER BY date"
        is_dated = any(column.name == "date" for column in view.columns)
        rows = self._reader.query(
            f"SELECT * FROM {identifier(network)}.{identifier(view.name)}{of_days if is_dated else ''}",  # noqa: S608
            as_of,
        )
        return ds.dataset(rows)

    def query(self, sql: str, *, as_of: Moment | None = None) -> LakeRows:
        """Return the rows of one SELECT in DuckDB's SQL, as ``permalake query`` runs it.

        Raises:
            PermalakeError: on one line, if the statement is wrong, writes, or takes too long.

        >>> sql = "SELECT count(*) AS vaas FROM wormhole.message_publication WHERE date < '2100-01-01'"
        >>> lake.query(sql).arrow().to_pylist()
        [{'vaas': 127}]
        """
        moment = self._as_of if as_of is None else _moment(as_of)
        return LakeRows(ds.dataset(self._reader.query(sql, moment)))

    def write_duckdb(self, file: str | Path) -> int:
        """Write a DuckDB database file for tools that open one: a view per table, ``NETWORK.table``.

        The views read the lake's Parquet files of the state that is read now, so the file is small, and
        has to be written again after a publication.

        Returns:
            The number of tables and views.

        >>> lake.write_duckdb("lake.duckdb") == len(lake.tables())
        True
        """
        return write_duckdb_file(self._reader.published(self._as_of), domain_of, Path(file))


def _day(argument: str, given: Day | None, default: date) -> date:
    if given is None:
        return default
    if isinstance(given, datetime):
        return given.date()
    try:
        return given if isinstance(given, date) else date.fromisoformat(given)
    except ValueError:
        raise PermalakeError(f"{argument}={given!r}: not a day; write it as 2022-09-28") from None


def _moment(given: Moment | None) -> AsOf | None:
    if given is None or isinstance(given, int):
        return given
    try:
        moment = given if isinstance(given, datetime) else datetime.fromisoformat(given)
    except ValueError:
        raise PermalakeError(f"as_of={given!r}: not a time; write it as 2022-09-28T12:00:00Z") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
