"""Pages and exports of whole tables and views, by date and key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from typing import Any

import pyarrow as pa

from permalake.contracts.schema import Column, Table
from permalake.contracts.views import LakeView
from permalake.lake.json_rows import timestamp
from permalake.lake.serving import EVERYTHING, Scan
from permalake.web.paging import Day, Integer, PageQuery, Text
from permalake.web.row_types import page_of, row_type
from permalake.web.state import RequestLake

_INTEGERS = ("int", "long")


@dataclass(frozen=True)
class ListedTable:
    """A table or view with a ``date``, as a list: ordered by date, then ``key``.

    ``key`` does not hold ``date``; ``reads`` names the tables below a view, ``runs_on`` says whether its rows
    of a day depend on earlier days.
    """

    name: str
    doc: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    reads: tuple[str, ...] = ()
    runs_on: bool = False

    @classmethod
    def of_table(cls, table: Table) -> ListedTable:
        """Return a table in the order of its key."""
        key = tuple(name for name in table.key if name != "date")
        return cls(table.name, table.doc, table.columns, key)

    @classmethod
    def of_view(cls, view: LakeView) -> ListedTable:
        """Return a view in the order of its columns that are no figures."""
        key = view.key
        if key is None:
            key = tuple(c.name for c in view.columns if c.type in ("int", "string"))
        return cls(view.name, view.doc, view.columns, key, view.tables, view.runs_on)

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema of an export."""
        return Table(self.name, "all", self.doc, self.columns, self.key).arrow

    @cached_property
    def page(self) -> Any:
        """The type of a page in JSON, for OpenAPI."""
        return page_of(row_type(self.name, self.doc, self.columns))

    def column(self, name: str) -> Column:
        """Return the column of that name, which the table must have."""
        return next(column for column in self.columns if column.name == name)

    def scans(self, scan: Scan) -> dict[str, Scan]:
        """Return what a query reads."""
        return {self.name: scan, **dict.fromkeys(self.reads, EVERYTHING if self.runs_on else scan)}

    def position(self, row: Mapping[str, Any]) -> list[Any]:
        """Return a row's place in the list, as JSON values."""
        return [row["date"].isoformat(), *(self._sortable(row[name], name) for name in self.key)]

    @cached_property
    def positions(self) -> tuple[Any, ...]:
        """The types of :meth:`position`."""
        return (Day, *(Integer if self.column(name).type in _INTEGERS else Text for name in self.key))

    def _sortable(self, value: Any, name: str) -> Any:
        return self._least(name) if value is None else value

    def _least(self, name: str) -> int | str:
        return -1 if self.column(name).type in _INTEGERS else ""

    def _ordered(self, name: str) -> str:
        column = self.column(name)
        if column.required:
            return column.name
        least = self._least(name)
        return f"coalesce({column.name}, {least if isinstance(least, int) else repr(least)})"

    def order(self, *, newest: bool) -> str:
        """Return the ORDER BY clause."""
        direction = "DESC" if newest else "ASC"
        return ", ".join([f"date {direction}", *(f"{self._ordered(name)}" for name in self.key)])

    def conditions(
        self, filters: Mapping[str, Any], first: date | None, last: date | None
    ) -> tuple[list[str], dict[str, Any]]:
        """Return conditions and their parameters: equality on columns, dates (inclusive)."""
        conditions = [f"{name} = $equal_{name}" for name in filters]
        bound = {f"equal_{name}": value for name, value in filters.items()}
        for name, sign, day in (("first", ">=", first), ("last", "<=", last)):
            if day is not None:
                conditions.append(f"date {sign} ${name}")
                bound[name] = day
        return conditions, bound

    def behind(self, after: Sequence[Any], *, newest: bool) -> tuple[str, dict[str, Any]]:
        """Return the condition on rows behind a position."""
        sign = "<" if newest else ">"
        bound: dict[str, Any] = {"after_date": after[0]}
        alternatives = []
        for number, (name, value) in enumerate(zip(self.key, after[1:], strict=True)):
            same = [f"{self._ordered(key)} = $after_{at}" for at, key in enumerate(self.key[:number])]
            alternatives.append("(" + " AND ".join([*same, f"{self._ordered(name)} > $after_{number}"]) + ")")
            bound[f"after_{number}"] = value
        equal = f" OR (date = $after_date AND ({' OR '.join(alternatives)}))" if alternatives else ""
        return f"(date {sign} $after_date{equal})", bound


def table_page(  # noqa: PLR0917
    lake: RequestLake,
    table: ListedTable,
    query: PageQuery,
    filters: Mapping[str, Any],
    first: date | None,
    last: date | None,
) -> dict[str, Any]:
    """Return ``{items, cursor?}`` of the rows between two dates with these values, as JSON values."""
    newest = query.sort == "newest"
    page = lake.page(query, {**filters, "start": first, "end": last}, positions=table.positions)
    conditions, bound = table.conditions(filters, first, last)
    if page.after is not None:
        condition, values = table.behind(page.after, newest=newest)
        conditions.append(condition)
        bound |= values
    page_rows = lake.rows(
        _select(table, conditions) + f" ORDER BY {table.order(newest=newest)} LIMIT $limit",
        {**bound, "limit": page.size + 1},
        **table.scans(Scan(first, last)),
    )
    rows, cursor = page.cut(page_rows, table.position)
    items = [{name: json_value(value) for name, value in row.items()} for row in rows]
    return {"items": items, **({"cursor": cursor} if cursor else {})}


def _select(table: ListedTable, conditions: Sequence[str]) -> str:
    columns = ", ".join(column.name for column in table.columns)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {columns} FROM {table.name}{where}"  # noqa: S608


def day_batches(
    lake: RequestLake,
    table: ListedTable,
    filters: Mapping[str, Any],
    first: date | None,
    last: date | None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a range by date and key, day by day: a year needs no more memory.

    A view that runs on is computed once for all days.
    """
    days = ((day, day) for day in published_days(lake, table, first, last))
    for since, until in [(first, last)] if table.runs_on else days:
        conditions, bound = table.conditions(filters, since, until)
        statement = f"{_select(table, conditions)} ORDER BY {table.order(newest=False)}"
        yield from lake.batches(statement, bound, **table.scans(Scan(since, until)))


def json_value(value: Any) -> Any:
    """Return a value as ``permalake query --format json`` writes it.

    Decimals are text without exponent, binary lower-case hex, dates ``YYYY-MM-DD``, times RFC 3339 in UTC.
    """
    convert = _CONVERSIONS.get(type(value))
    return convert(value) if convert else value


_CONVERSIONS: dict[type, Callable[[Any], Any]] = {
    Decimal: lambda value: format(value, "f"),
    bytes: bytes.hex,
    date: date.isoformat,
    datetime: timestamp,
}


def published_days(
    lake: RequestLake, table: ListedTable, first: date | None, last: date | None
) -> Iterator[date]:
    """Yield the days of a range on which a table has rows, oldest first."""
    days = {day for name in table.reads or (table.name,) for day in lake.snapshot.days(lake.network, name)}
    return (day for day in sorted(days) if (first or date.min) <= day <= (last or date.max))
