"""Lists of pages that are filtered, sorted by column and paged; their link reproduces them.

A page shows :data:`SHOWN` rows; JSON, CSV and Parquet have up to :data:`MOST` of the same list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Literal
from urllib.parse import urlencode

from pydantic import ConfigDict, Field
from starlette.requests import Request

from permalake.web.paging import NoQuery
from permalake.web.problems import bad_request
from permalake.web.ranges import FIRST_DAY, DayRange

SHOWN = 50
MOST = 10_000
_FILES = ("csv", "parquet", "json")
_NUMBERS = ("figure", "usd", "coins")
_LARGEST_FIRST = (*_NUMBERS, "time")
Kind = Literal["text", "id", "time", "figure", "usd", "coins"]
_PLAIN_WORDS = ("ascending", "descending")
_RISING_AND_FALLING = {
    "time": ("oldest first", "newest first"),
    **dict.fromkeys(_NUMBERS, ("smallest first", "largest first")),
}
"""Words for both directions of an order; other columns may be sorted by a code, not by what is shown."""


@dataclass(frozen=True)
class ListColumn:
    """A column: the row's value of that name, its head, and how it is shown; ``sorts``: whether by click."""

    name: str
    label: str
    kind: Kind = "text"
    sorts: bool = True


@dataclass(frozen=True)
class ListField:
    """A field of the filter's form; ``choices``: value and label of each option, where it is a choice."""

    name: str
    label: str
    value: str
    choices: Sequence[tuple[str, str]] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the field for the template."""
        return {"name": self.name, "label": self.label, "value": self.value, "choices": list(self.choices)}


def _signs(column: ListColumn) -> tuple[str, str]:
    """Return both directions of a column as ``sort`` has them, the one to begin with first."""
    return ("-", "") if column.kind in _LARGEST_FIRST else ("", "-")


def _folded(value: Any) -> str:
    return str(value).casefold()


class ListQuery(NoQuery, DayRange):
    """Parameters of every list: its range, its order and its part."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)

    sort: str = Field("", max_length=40, description="A column; with - before it, the largest first.")
    page: int = Field(1, ge=1, le=1000)
    format: str | None = None


class PageList:
    """A list as a request asks for it."""

    def __init__(
        self, request: Request, query: ListQuery, columns: Sequence[ListColumn], default: str
    ) -> None:
        """Read what is asked for.

        Args:
            request: The request, whose parameters the links keep.
            query: Its parameters.
            columns: The list's columns.
            default: The order without ``sort``, written as that is.

        Raises:
            ProblemError: 400 if the list is not sorted by this column.
        """
        asked = query.sort or default
        self._request, self._query, self._columns = request, query, columns
        self.column = asked.removeprefix("-")
        """The column by which it is sorted."""
        self.is_falling = asked.startswith("-")
        sortable = [column.name for column in columns if column.sorts]
        if self.column not in sortable:
            raise bad_request(
                f"sort: {self.column} is no column to sort by; choose from {', '.join(sortable)}"
            )
        is_file = query.format in _FILES
        self.limit = MOST if is_file else SHOWN
        self.skip = 0 if is_file else (query.page - 1) * SHOWN

    @property
    def direction(self) -> str:
        """The direction for ORDER BY; rows without a value stand at the end."""
        return "DESC NULLS LAST" if self.is_falling else "ASC NULLS LAST"

    def part(self, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Return the part of rows at hand that is asked for, and one more where there are more."""
        kind = next(column.kind for column in self._columns if column.name == self.column)
        value: Callable[[Any], Any] = Decimal if kind in _NUMBERS else _folded
        filled = [row for row in rows if row[self.column] is not None]
        empty = [row for row in rows if row[self.column] is None]
        filled.sort(key=lambda row: value(row[self.column]), reverse=self.is_falling)
        return [*filled, *empty][self.skip : self.skip + self.limit + 1]

    def content(
        self,
        fields: Sequence[ListField],
        rows: Sequence[Mapping[str, Any]],
        link: Callable[[Mapping[str, Any]], Mapping[str, str]],
    ) -> dict[str, Any]:
        """Return what ``list.html`` shows.

        Args:
            fields: Fields of the filter's form beside the range.
            rows: The rows of the part, and one more where there are more; JSON values.
            link: The addresses, below the server's root, to which the cells of a row lead, by column.
        """
        shown = [dict(row) for row in rows[: self.limit]]
        is_last, page = len(rows) <= self.limit, self._query.page
        before = self._address(page=str(page - 1)) if page > 1 else None
        return {
            "rows": shown,
            "heads": [self._head(column) for column in self._columns],
            "fields": [field.as_json() for field in fields],
            "links": [dict(link(row)) for row in shown],
            "orders": self._orders(),
            "kept": self._kept("sort"),
            "everywhere": None if shown else self._address(start=FIRST_DAY, end=self._last()),
            "part": {
                "first": self.skip + 1 if shown else 0,
                "last": self.skip + len(shown) if shown else 0,
                "is_last": is_last,
                "before": before,
                "after": None if is_last else self._address(page=str(page + 1)),
                "most": MOST,
            },
            "files": {form: self._address(format=form, list="rows") for form in _FILES},
        }

    def _last(self) -> str:
        """Return the end of all days: today, or the day that was asked for if it is later."""
        today = datetime.now(UTC).date()
        return max(self._query.end or today, today).isoformat()

    def _head(self, column: ListColumn) -> dict[str, Any]:
        """Return a column's head; its link sorts by it, or turns the order round."""
        is_chosen = column.name == self.column
        sign = ("" if self.is_falling else "-") if is_chosen else _signs(column)[0]
        order = f"{sign}{column.name}"
        return {
            "name": column.name,
            "label": column.label,
            "kind": column.kind,
            "sort": self._address(sort=order) if column.sorts else None,
            "sorted": ("descending" if self.is_falling else "ascending") if is_chosen else None,
        }

    def _orders(self) -> list[dict[str, Any]]:
        """Return every order for a choice, as windows too narrow for a head of columns need it."""
        orders = []
        for column in self._columns:
            words = dict(zip(("", "-"), _RISING_AND_FALLING.get(column.kind, _PLAIN_WORDS), strict=True))
            for sign in _signs(column) if column.sorts else ():
                is_chosen = (column.name, sign == "-") == (self.column, self.is_falling)
                label = f"{column.label.removesuffix(', UTC')}, {words[sign]}"
                orders.append({"value": f"{sign}{column.name}", "label": label, "is_chosen": is_chosen})
        return orders

    def _kept(self, *left_out: str) -> dict[str, str]:
        """Return the parameters of the request that name the list, not a part or a file of it."""
        without = {"page", "format", "list", *left_out}
        given = self._request.query_params.items()
        return {name: value for name, value in given if value and name not in without}

    def _address(self, **changed: str) -> str:
        """Return the query of the request with other parameters; a part or a file only where it is named."""
        return "?" + urlencode({**self._kept(), **changed})
