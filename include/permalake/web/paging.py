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
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from permalake.web.problems import bad_request

_WRONG = "cursor: not a cursor of this route with these filters; start again without it"


class NoQuery(BaseModel):
    """Query parameters of a route that has none; base of all others: an unknown one is an error (400)."""

    model_config = ConfigDict(extra="forbid")


class PageQuery(NoQuery):
    """``pageSize``, ``cursor`` and ``sort`` of a list."""

    page_size: int | None = Field(
        None,
        ge=1,
        alias="pageSize",
        description="Items per page, by default 100; more than 1000 count as 1000.",
    )
    cursor: str | None = Field(None, max_length=2048, description="The cursor of the page before.")
    sort: Literal["newest", "oldest"] = Field("newest", description="Order of the list.")


@dataclass(frozen=True)
class ListPage:
    """A page that was asked for: at most ``size`` items behind the position ``after`` (None: the first).

    ``after`` holds the sort key of the last item of the page before, as JSON values.
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


def page_of(
    route: str,
    filters: Mapping[str, Any],
    page_size: int,
    cursor: str | None,
    *,
    positions: int,
    maximum: int,
) -> ListPage:
    """Return the page that a request asks for.

    Args:
        route: Any name of the route, with its network.
        filters: Every parameter on which the list and its order depend.
        page_size: Wanted size; clamped to ``maximum``.
        cursor: The cursor of the request.
        positions: Length of a sort key.
        maximum: Largest page.

    Raises:
        ProblemError: 400 if the cursor is malformed, or of another route or filters.
    """
    text = json.dumps([route, filters], sort_keys=True, default=str)
    binding = hashlib.blake2b(text.encode(), digest_size=9).hexdigest()
    if cursor is None:
        return ListPage(min(page_size, maximum), None, binding)
    try:
        decoded = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        bound, size, after = decoded
    except (ValueError, TypeError):
        raise bad_request(_WRONG) from None
    if bound != binding or not _is_size(size, maximum) or not _is_position(after, positions):
        raise bad_request(_WRONG)
    return ListPage(size, tuple(after), binding)


def _is_size(size: object, maximum: int) -> bool:
    return isinstance(size, int) and not isinstance(size, bool) and 1 <= size <= maximum


def _is_position(after: object, length: int) -> bool:
    return (
        isinstance(after, list)
        and len(after) == length
        and all(isinstance(value, int | str) and not isinstance(value, bool) for value in after)
    )
