"""Lists of outputs for the indexer: unspent or all, oldest or newest first, page by page.

A position is (time of creation in unix seconds, output id).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from itertools import islice
from typing import Any

from permalake.iota.rest import ledger
from permalake.iota.rest.index_filters import OutputFilter
from permalake.lake.serving import Scan
from permalake.web.state import RequestLake

Position = tuple[int, str]
_AT_ONCE = 1000
_UNSPENT = (
    "NOT EXISTS (SELECT 1 FROM consumed_outputs AS c "
    "WHERE c.output_id = o.output_id AND c.milestone_index <= $last)"
)


@dataclass(frozen=True)
class Listing:
    """What of an index a page holds.

    Args:
        filters: One for each kind of outputs.
        last: The last milestone that counts.
        spent_too: Whether spent outputs count.
        newest_first: The order.
        after: The position after which the page begins.
        size: Rows wanted at most.
        created: The first and the last day on which wanted outputs were created.
    """

    filters: tuple[OutputFilter, ...]
    last: int
    spent_too: bool
    newest_first: bool
    after: Position | None
    size: int
    created: tuple[date | None, date | None] = (None, None)

    def scan(self) -> Scan:
        """Return the days on which outputs of the page may have been created."""
        first, last = self.created
        if self.after:
            day = day_of(self.after[0])
            if self.newest_first:
                last = min(last or day, day)
            else:
                first = max(first or day, day)
        return Scan(first=first, last=last)

    def page_condition(self) -> tuple[str, dict[str, Any]]:
        """Return the condition that a row counts and lies behind ``after``, with its parameters."""
        text = "o.milestone_index <= $last"
        if self.after is None:
            return text, {"last": self.last}
        sign = "<" if self.newest_first else ">"
        text += (
            f" AND (o.ms_timestamp {sign} to_timestamp($after_time) "
            f"OR (o.ms_timestamp = to_timestamp($after_time) AND o.output_id {sign} $after_id))"
        )
        return text, {"last": self.last, "after_time": self.after[0], "after_id": self.after[1]}

    @property
    def order(self) -> str:
        """SQL's ORDER BY."""
        way = "DESC" if self.newest_first else "ASC"
        return f"created {way}, output_id {way}"


def day_of(time: int) -> date:
    """Return the UTC date of a time in unix seconds."""
    return datetime.fromtimestamp(time, UTC).date()


def positions(lake: RequestLake, listing: Listing) -> list[Position]:
    """Return the positions of at most ``listing.size`` outputs, in order."""
    if _is_narrow(listing):
        return list(islice(_unspent(lake, listing), listing.size))
    return _indexed(lake, listing)


def narrowed(lake: RequestLake, output_filter: OutputFilter, scan: Scan) -> Scan:
    """Return the part of a scan where the id indices have all values that a filter demands."""
    for columns, value in output_filter.lookups:
        places = {
            index
            for column in columns
            for index in lake.find(output_filter.table, column, value).milestones or ()
        }
        narrower = scan.milestones
        scan = replace(scan, milestones=sorted(places if narrower is None else places.intersection(narrower)))
    return scan


def _is_narrow(listing: Listing) -> bool:
    return not listing.spent_too and all(output_filter.lookups for output_filter in listing.filters)


def _unspent(lake: RequestLake, listing: Listing) -> Iterator[Position]:
    """Yield positions of unspent outputs, looking up only whether the selected ones are spent."""
    size = max(listing.size, _AT_ONCE)
    part = replace(listing, spent_too=True, size=size)
    while True:
        selected = _indexed(lake, part)
        spent = ledger.spent(lake, [output_id for _, output_id in selected])
        yield from (position for position in selected if position[1] not in spent)
        if len(selected) < part.size:
            return
        part = replace(part, after=selected[-1], size=2 * part.size)


def _indexed(lake: RequestLake, listing: Listing) -> list[Position]:
    """Return positions by the tables' own columns."""
    page, bound = listing.page_condition()
    scan = listing.scan()
    selects, scans, parameters = [], {}, {**bound, "size": listing.size}
    for output_filter in listing.filters:
        scans[output_filter.table] = narrowed(lake, output_filter, scan)
        selects.append(_select(output_filter, page, listing))
        parameters |= output_filter.parameters
    if all(table_scan.is_empty for table_scan in scans.values()):
        return []
    if not listing.spent_too:
        scans["consumed_outputs"] = Scan(first=scan.first)
    sql = f"{' UNION ALL '.join(selects)} ORDER BY {listing.order} LIMIT $size"
    return [(row["created"], row["output_id"]) for row in lake.rows(sql, parameters, **scans)]


def _select(output_filter: OutputFilter, page: str, listing: Listing) -> str:
    where = (
        [*output_filter.conditions, page]
        if listing.spent_too
        else [*output_filter.conditions, page, _UNSPENT]
    )
    # Names of tables and columns are the lake's own; values are parameters.
    return (
        f"SELECT epoch(o.ms_timestamp)::BIGINT AS created, o.output_id "  # noqa: S608
        f"FROM {output_filter.table} AS o WHERE {' AND '.join(where)}"
    )


def page_items(entries: Sequence[Position], prefix: str) -> list[str]:
    """Return the output ids of positions."""
    return [prefix + output_id for _, output_id in entries]
