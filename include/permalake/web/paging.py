"""Pages of a list: an opaque cursor that holds the position after a page, bound to its route and filters.

A cursor continues behind a row's sort key, not at an offset: a publication between two pages neither repeats
nor loses rows. It carries the page size, so a ``pageSize`` beside it is ignored (TIP-26).
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from permalake.config.serving import ServeSettings
from permalake.web.problems import bad_request

_WRONG = "cursor: not a cursor of this route with these filters; start again without it"


Integer = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
Unsigned = Annotated[int, Field(ge=0, le=2**32 - 1)]
"""A milestone's index, or unix seconds of a ledger."""
Microseconds = Annotated[int, Field(ge=-62_135_596_800_000_000, lt=253_402_300_800_000_000)]
"""Since 1970, within the years 1 to 9999."""
Text = str
Day = date


LIMIT = "A number above the server's limit, 1000 unless it is configured, counts as the limit."
"""The description of every parameter for a number of items."""


class NoQuery(BaseModel):
    """Query parameters of a route that has none; base of all others: an unknown one is an error (400)."""

    model_config = ConfigDict(extra="forbid")


Nothing = Annotated[NoQuery, Query()]
"""The type of the query of a route that has none."""


class PageOptions(NoQuery):
    """Query parameters of a page for readers; base of those that have more. Routers refuse others."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)

    format: str | None = None


class PageQuery(NoQuery):
    """``pageSize``, ``cursor`` and ``sort`` of a list."""

    page_size: int | None = Field(
        None,
        ge=1,
        alias="pageSize",
        description=f"Items per page, by default 100. {LIMIT}",
    )
    cursor: str | None = Field(None, max_length=2048, description="The cursor of the page before.")
    sort: Literal["newest", "oldest"] = Field("newest", description="Order of the list.")


@dataclass(frozen=True)
class ListPage:
    """A page that was asked for: at most ``size`` items behind the position ``after`` (None: the first).

    ``after`` holds the sort key of the last item of the page before, its days as dates.
    """

    size: int
    after: tuple[Any, ...] | None
    _binding: str

    def behind(self, position: tuple[Any, ...]) -> ListPage:
        """Return the page of the same size behind an item with this sort key."""
        return replace(self, after=position)

    def cursor(self, position: Sequence[Any]) -> str:
        """Return the cursor of the page behind the item with this sort key."""
        text = json.dumps([self._binding, self.size, list(position)], separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()

    def cut(self, rows: Sequence[Any], key: Any) -> tuple[Sequence[Any], str | None]:
        """Return the page of ``rows`` and the next cursor; None on the last page.

        ``rows``: what the lake has behind ``after``, at most ``size + 1``. ``key`` gives a row's sort key.
        """
        if len(rows) <= self.size:
            return rows, None
        page = rows[: self.size]
        return page, self.cursor(key(page[-1]))


def items_of_page(serve: ServeSettings, asked: int | None, most: int | None = None) -> int:
    """Return how many items a list gives: as many as are asked for, never more than the limit.

    ``most``: a limit of the list's own, below ``serve.max_page_size``.
    """
    size = asked or serve.page_size
    return min(size, serve.max_page_size, most or size)


def page_of(
    route: str,
    filters: Mapping[str, Any],
    page_size: int,
    cursor: str | None,
    *,
    positions: tuple[Any, ...],
    maximum: int,
) -> ListPage:
    """Return the page that a request asks for.

    Args:
        route: Any name of the route, with its network.
        filters: Every parameter on which the list and its order depend.
        page_size: Wanted size; clamped to ``maximum``.
        cursor: The cursor of the request.
        positions: Types of a sort key's values: :data:`Day`, :data:`Integer`, :data:`Text` and the like.
        maximum: Largest page.

    Raises:
        ProblemError: 400 if the cursor is malformed, or of another route or filters.
    """
    text = json.dumps([route, filters], sort_keys=True, default=str)
    binding = hashlib.blake2b(text.encode(), digest_size=9).hexdigest()
    if cursor is None:
        return ListPage(min(page_size, maximum), None, binding)
    try:
        decoded = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        bound, size, after = _cursors(positions).validate_json(decoded, strict=True)
    except ValueError:
        raise bad_request(_WRONG) from None
    if bound != binding or not 1 <= size <= maximum:
        raise bad_request(_WRONG)
    return ListPage(size, after, binding)


@cache
def _cursors(positions: tuple[Any, ...]) -> TypeAdapter[tuple[str, int, tuple[Any, ...]]]:
    """Return the schema of cursors; it bounds nesting and digits, and takes no lone surrogates."""
    after = tuple[positions] if positions else tuple[()]  # type: ignore[valid-type]
    return TypeAdapter(tuple[str, int, after])  # type: ignore[valid-type]
