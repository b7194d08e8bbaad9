"""Lists of outputs for the indexer: unspent or all, oldest or newest first, page by page.

A position is (time of creation in unix seconds, output id). Rows of a lake that was built before the
columns of unlock conditions existed are decoded from ``data`` where a filter needs these columns.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from itertools import islice
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from permalake.iota.codec.bech32 import encode_addresses
from permalake.iota.codec.decode_outputs import decode_outputs
from permalake.iota.codec.outputs import Protocol
from permalake.iota.rest import ledger
from permalake.iota.rest.index_filters import RETURN_ADDRESS, YOUNG_COLUMNS, Kind, OutputFilter
from permalake.lake.serving import LakeSnapshot, Scan
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


def positions(lake: RequestLake, listing: Listing, protocol: Protocol, hrp: str) -> list[Position]:
    """Return the positions of at most ``listing.size`` outputs, in order."""
    found = [_unspent(lake, listing) if _is_narrow(listing) else iter(_indexed(lake, listing))]
    for one in listing.filters:
        if one.young and (days := old_days(lake.snapshot, lake.network, one.table, listing.scan())):
            found.append(islice(_decoded(lake, listing, one, days, protocol, hrp), listing.size))
    merged = heapq.merge(*found, reverse=listing.newest_first)
    return list(islice(merged, listing.size))


def old_days(snapshot: LakeSnapshot, network: str, table: str, scan: Scan) -> frozenset[date]:
    """Return the days of a scan whose rows lack the columns of unlock conditions."""
    served = snapshot.table(network, table)
    files = served.files if served else ()
    return frozenset(
        file.day for file in files if scan.keeps(file) and "native_token_count" not in file.bounds
    )


def narrowed(lake: RequestLake, one: OutputFilter, scan: Scan, *, is_old: bool = False) -> Scan:
    """Return the part of a scan where the id indices have all values that a filter demands."""
    for columns, value in one.lookups:
        if is_old and not YOUNG_COLUMNS.isdisjoint(columns):
            continue
        places = {
            index for column in columns for index in lake.find(one.table, column, value).milestones or ()
        }
        known = scan.milestones
        scan = replace(scan, milestones=sorted(places if known is None else places.intersection(known)))
    return scan


def _is_narrow(listing: Listing) -> bool:
    return not listing.spent_too and all(one.lookups for one in listing.filters)


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
    for one in listing.filters:
        scans[one.table] = narrowed(lake, one, scan)
        if one.young and (old := old_days(lake.snapshot, lake.network, one.table, scan)):
            days = set(lake.snapshot.days(lake.network, one.table)) - old
            scans[one.table] = replace(scans[one.table], days=days)
        selects.append(_select(one, [*one.conditions, *one.young, page], listing, ""))
        parameters |= one.parameters
    if all(one.is_empty for one in scans.values()):
        return []
    if not listing.spent_too:
        scans["consumed_outputs"] = Scan(first=scan.first)
    sql = f"{' UNION ALL '.join(selects)} ORDER BY {listing.order} LIMIT $size"
    return [(row["created"], row["output_id"]) for row in lake.rows(sql, parameters, **scans)]


def _select(one: OutputFilter, conditions: Iterable[str], listing: Listing, more: str) -> str:
    where = list(conditions) if listing.spent_too else [*conditions, _UNSPENT]
    # Names of tables and columns are the lake's own; values are parameters.
    return (
        f"SELECT epoch(o.ms_timestamp)::BIGINT AS created, o.output_id{more} "  # noqa: S608
        f"FROM {one.table} AS o WHERE {' AND '.join(where)}"
    )


def _decoded(  # noqa: PLR0917
    lake: RequestLake,
    listing: Listing,
    one: OutputFilter,
    days: frozenset[date],
    protocol: Protocol,
    hrp: str,
) -> Iterator[Position]:
    """Yield positions of old rows, by their bytes."""
    page, bound = listing.page_condition()
    scan = narrowed(lake, one, listing.scan(), is_old=True)
    if scan.is_empty:
        return
    scans = {one.table: replace(scan, days=days)}
    if not listing.spent_too:
        scans["consumed_outputs"] = Scan(first=listing.scan().first)
    select = _select(one, [*one.conditions, page], listing, ", o.* EXCLUDE (output_id)")
    sql = f"{select} ORDER BY {listing.order}"
    parameters = {**bound, **one.used_by(one.conditions)}
    with duckdb.connect(":memory:") as session:
        for batch in lake.batches(sql, parameters, **scans):
            rows = with_conditions(pa.Table.from_batches([batch]), one.kind, protocol, hrp)
            session.register("o", rows)
            chosen = session.execute(
                f"SELECT created, output_id FROM o WHERE {' AND '.join(one.young)} ORDER BY {listing.order}",  # noqa: S608
                one.used_by(one.young),
            )
            yield from chosen.fetchall()


def with_conditions(rows: pa.Table, kind: Kind, protocol: Protocol, hrp: str) -> pa.Table:
    """Return rows of an output table with the columns that their bytes tell (TIP-18)."""
    outputs = decode_outputs(rows["data"].combine_chunks(), protocol)
    columns = {"native_token_count": pa.array(np.diff(outputs.native_token_offset).astype(np.int32))}
    if back := RETURN_ADDRESS.get(kind):
        for name, values in (
            ("timelock_time", outputs.timelock_time),
            ("expiration_time", outputs.expiration_time),
            ("storage_return_amount", outputs.storage_return_amount),
        ):
            columns[name] = pa.array(values, mask=values == 0)
        for name, owner in (
            ("expiration_return_address", outputs.expiration_return),
            (back, outputs.storage_return),
        ):
            columns[name] = encode_addresses(hrp, owner.kind, owner.value)
    for name, column in columns.items():
        at = rows.schema.get_field_index(name)
        rows = rows.append_column(name, column) if at < 0 else rows.set_column(at, name, column)
    return rows


def page_items(found: Sequence[Position], prefix: str) -> list[str]:
    """Return the output ids of positions."""
    return [prefix + output_id for _, output_id in found]
