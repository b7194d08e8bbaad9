"""Pages of lists by milestone, which read only as many milestones as a page needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from permalake.contracts.rows import Row
from permalake.lake.serving import Scan
from permalake.web.paging import ListPage
from permalake.web.state import RequestLake


def paged_rows(
    lake: RequestLake,
    page: ListPage,
    places: Iterable[int],
    sql: str,
    bound: Mapping[str, Any],
    *,
    tables: Sequence[str],
    ties: Sequence[str],
    newest: bool,
) -> list[Row]:
    """Return one page of a list, and one row more if there is one.

    Args:
        lake: The published state.
        page: The page; its position is a milestone and values of ``ties``.
        places: The milestones, of the wanted range, that may hold rows of the list.
        sql: SELECT of the list's rows; ``milestone_index`` and ``ties`` are among its columns.
        bound: Its parameters.
        tables: Tables that it reads.
        ties: Columns that order the rows of a milestone.
        newest: Whether the newest comes first; the order is the exact reverse of the other.
    """
    position = ("milestone_index", *ties)
    direction, compare = ("DESC", "<") if newest else ("ASC", ">")
    order = ", ".join(f"{name} {direction}" for name in position)
    ahead, behind, after = sorted(places, reverse=newest), "", dict[str, Any]()
    if page.after:
        at = page.after[0]
        ahead = [index for index in ahead if (index <= at if newest else index >= at)]
        after = {f"after_{name}": value for name, value in zip(position, page.after, strict=True)}
        behind = f" AND ({', '.join(position)}) {compare} ({', '.join(f'${name}' for name in after)})"
    rows: list[Row] = []
    count = page.size + 1
    while ahead and len(rows) <= page.size:
        portion, ahead = ahead[:count], ahead[count:]
        count *= 2
        # A scan opens whole files: unless the statement says so, a row would come with every portion.
        first, last = min(portion), max(portion)
        rows += lake.rows(
            f"SELECT * FROM ({sql}) WHERE milestone_index BETWEEN {first} AND {last}{behind} "  # noqa: S608
            f"ORDER BY {order} LIMIT {page.size + 1 - len(rows)}",
            {**bound, **after},
            **dict.fromkeys(tables, Scan(milestones=portion)),
        )
    return rows
