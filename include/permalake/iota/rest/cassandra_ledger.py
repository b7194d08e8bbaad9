"""The ledger in Cassandra, as far as the store holds the published state; the rest comes from the lake.

An answer is of the request's published state. The catalog tells which days the store holds as that state has
them, and the write time of their rows. Rows of other days are not taken: the lake answers in their place.

A day may be rewritten meanwhile. A single row with its day's write time is of the state all the same. All
other rows need their milestone's row in ``sync``, which is deleted before a rewrite and written after it;
without one the lake answers.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from permalake.contracts.rows import Row
from permalake.iota.permanode.chrysalis_schema import keyspace_of
from permalake.iota.rest.lake_ledger import LakeLedger
from permalake.iota.rest.ledger_reader import LedgerList
from permalake.lake.serving import EVERYTHING
from permalake.stores.cassandra_reader import CassandraReader
from permalake.stores.readers import WholeDays
from permalake.web.paging import ListPage
from permalake.web.state import RequestLake

_STARDUST_KINDS = {3: "basic", 4: "alias", 5: "foundry", 6: "nft"}
_MAX_SMALLINT = 0x7FFF


@dataclass(frozen=True)
class HeldMilestones:
    """Milestones of the days that the store holds. ``complete``: these are all published days.

    ``micros``: the write time of each day's rows.
    """

    starts: tuple[int, ...]
    ends: tuple[int, ...]
    micros: tuple[int, ...]
    complete: bool

    def __contains__(self, index: int | None) -> bool:
        return self.written(index) is not None

    def written(self, index: int | None) -> int | None:
        """Return the write time of a milestone's rows; None where the store does not hold its day.

        A row without a milestone (None) is of no day: a permanode that shares the keyspace has seen it before
        any milestone referenced it.
        """
        if index is None:
            return None
        at = bisect_right(self.starts, index) - 1
        return self.micros[at] if at >= 0 and index <= self.ends[at] else None


@dataclass(frozen=True)
class _Source:
    """Where the rows of a list stand in the store, in order of ``ms_timestamp`` within a partition.

    ``hints``: the table that names a key's ranges of milestones, with its fixed columns; None: one partition.
    ``slices``: fixed values of clustering columns before ``ms_timestamp``.
    """

    table: str
    hints: tuple[str, str] | None = None
    slices: tuple[str, ...] = ("",)


_SOURCES = {
    ("parents", "parent_id"): _Source("parents_by_ms"),
    ("tags", "tag"): _Source("tags", ("tag_hints", "table_kind = 'tag'")),
    ("basic_outputs", "address"): _Source(
        "basic_outputs_by_address", ("addresses_hints", "output_kind = 'extended' AND variant = 'address'")
    ),
    ("legacy_outputs", "address"): _Source(
        "legacy_outputs_by_address",
        ("addresses_hints", "output_kind = 'legacy' AND variant = 'address'"),
        tuple(f" AND output_type = {kind} AND is_used = {used}" for kind in (0, 1) for used in (False, True)),
    ),
}
"""Lists that the store answers, by table and column of the lake."""


def held_milestones(lake: RequestLake, whole: WholeDays) -> HeldMilestones:
    """Return the milestones that a store holds as the request's state has them."""

    def derive() -> HeldMilestones:
        days = lake.rows("SELECT date, start_ms, end_ms FROM date_cache", date_cache=EVERYTHING)
        dates = whole.as_of(lake.snapshot.publication)
        indexes = sorted(
            (row["start_ms"], row["end_ms"], dates[row["date"]]) for row in days if row["date"] in dates
        )
        starts, ends, micros = (
            (tuple(column) for column in zip(*indexes, strict=True)) if indexes else ((),) * 3
        )
        return HeldMilestones(starts, ends, micros, len(indexes) == len(days))

    return lake.once(f"held by the store {whole.version}", derive)


class CassandraLedger:
    """Reads the ledger from Cassandra; see :class:`~permalake.iota.rest.ledger_reader.LedgerReader`."""

    def __init__(self, lake: RequestLake, reader: CassandraReader, held: HeldMilestones) -> None:
        self._lake = LakeLedger(lake)
        self._reader = reader
        self._held = held
        self._deadline = lake.deadline
        self._keyspace = keyspace_of(lake.network)
        network = lake.settings.network(lake.network)
        self._chunk_size = network.chunk_size
        self._protocol = network.protocol

    def message(self, message_id: str) -> Row:
        """Return a message's row; ``white_flag_index`` is not in the store."""
        row = self._valid(
            self._rows(
                "SELECT message_id, message, milestone_index, inclusion_state, conflict_reason, "
                "WRITETIME(milestone_index) AS written FROM messages WHERE message_id = ?",
                message_id,
            )
        )
        if not row:
            return self._lake.message(message_id)
        return row[0] | {"conflict_reason": row[0]["conflict_reason"] & 0xFF}

    def included_message(self, transaction_id: str) -> Row:
        """Return the message with which a transaction was included."""
        row = self._valid(
            self._rows(
                "SELECT message_id, milestone_index, WRITETIME(milestone_index) AS written "
                "FROM transactions_by_state "
                "WHERE transaction_id = ? AND inclusion_state = 1 LIMIT 1",
                transaction_id,
            )
        )
        return self.message(row[0]["message_id"]) if row else self._lake.included_message(transaction_id)

    def output(self, output_id: str, kinds: Iterable[str]) -> Row:
        """Return an output's row, from the transaction that created it; a receipt's is the lake's."""
        index = int.from_bytes(bytes.fromhex(output_id[64:]), "little")
        if index > _MAX_SMALLINT:
            return self._lake.output(output_id, kinds)
        stored = self._valid(
            self._rows(
                "SELECT message_id, data, milestone_index, WRITETIME(milestone_index) AS written "
                "FROM transactions_by_state "
                "WHERE transaction_id = ? AND inclusion_state = 1 AND idx = ? AND variant = 'output'",
                output_id[:64],
                index,
            )
        )
        if not stored:
            return self._lake.output(output_id, kinds)
        row = stored[0]
        timestamp = self.milestone(row["milestone_index"])["timestamp"]
        kind_and_amount = self._kind_and_amount(row["data"])
        return {
            **row,
            **kind_and_amount,
            "output_id": output_id,
            "ms_timestamp": datetime.fromtimestamp(timestamp, UTC),
        }

    def milestone(self, index: int) -> Row:
        """Return a milestone's row."""
        row = self._valid(self._milestone(index))
        return row[0] if row else self._lake.milestone(index)

    def listed(self, question: LedgerList, page: ListPage) -> list[Row]:
        """Return one page of a list, and one row more if there is one."""
        source = _SOURCES.get((question.table, question.column))
        at = self._milestone(page.after[0]) if page.after else []
        if source is None or (page.after and not at):
            return self._lake.listed(question, page)
        since = datetime.fromtimestamp(at[0]["timestamp"], UTC) if at else None
        rows = self._page(self._ordered(source, question, page, since), question, page)
        if len(self._valid(rows)) != len(rows):
            return self._lake.listed(question, page)
        if not self._held.complete:
            others = [index for index in self._lake.places(question) if index not in self._held]
            rows += self._lake.listed(question, page, others)
            rows.sort(key=question.place, reverse=question.newest)
        return rows[: page.size + 1]

    def _page(self, rows: Iterator[Row], question: LedgerList, page: ListPage) -> list[Row]:
        """Return whole milestones of a list until the page is full; the store orders them by time alone."""
        rows_so_far: list[Row] = []
        for _, group in groupby(rows, key=lambda row: row["ms_timestamp"]):
            kept = [row for row in group if self._matches(row, question, page)]
            rows_so_far += sorted(kept, key=question.place, reverse=question.newest)
            if len(rows_so_far) > page.size:
                break
        return rows_so_far

    def _matches(self, row: Row, question: LedgerList, page: ListPage) -> bool:
        if isinstance(row.get("inclusion_state"), bytes):
            row["inclusion_state"] = row["inclusion_state"][0]
        return (
            row["milestone_index"] in self._held
            and row["milestone_index"] <= question.last
            and question.behind(row, page)
            and all(row[name] == value for name, value in question.equal.items())
        )

    def _ordered(
        self, source: _Source, question: LedgerList, page: ListPage, since: datetime | None
    ) -> Iterator[Row]:
        """Yield the rows of a list in order of time, from the milestone of the page's position on."""
        columns = ", ".join(
            dict.fromkeys((*question.columns, "milestone_index", "ms_timestamp", question.tie))
        )
        order, compare = ("DESC", "<=") if question.newest else ("ASC", ">=")
        ranged = "" if source.hints is None else " AND ms_range_id = ?"
        timed = "" if since is None else f" AND ms_timestamp {compare} ?"
        for milestones in self._ranges(source, question, page):
            values = (question.value, *milestones, *(() if since is None else (since,)))
            yield from heapq.merge(
                *(
                    self._stream(
                        f"SELECT {columns} FROM {source.table} WHERE {question.column} = ?"  # noqa: S608
                        f"{ranged}{slice_condition}{timed} ORDER BY ms_timestamp {order}",
                        *values,
                    )
                    for slice_condition in source.slices
                ),
                key=lambda row: row["ms_timestamp"],
                reverse=question.newest,
            )

    def _ranges(self, source: _Source, question: LedgerList, page: ListPage) -> list[tuple[int, ...]]:
        """Return the partitions of a key, as values of ``ms_range_id``, in the order of the list."""
        if source.hints is None:
            return [()]
        table, fixed = source.hints
        statement = f"SELECT ms_range_id FROM {table} WHERE {question.column} = ? AND {fixed}"  # noqa: S608
        rows = self._rows(statement, question.value)
        ranges = sorted((row["ms_range_id"] for row in rows), reverse=question.newest)
        if page.after:
            at = page.after[0] // self._chunk_size
            ranges = [number for number in ranges if (number <= at if question.newest else number >= at)]
        return [(number,) for number in ranges]

    def _valid(self, rows: list[Row]) -> list[Row]:
        """Return the rows that are of the request's state.

        ``written``: a row's write time, where the statement asks for it.
        """
        held = [row for row in rows if row["milestone_index"] in self._held]
        doubted = {
            row["milestone_index"]
            for row in held
            if row.pop("written", None) != self._held.written(row["milestone_index"])
        }
        rewritten = doubted - self._synced(doubted)
        return [row for row in held if row["milestone_index"] not in rewritten]

    def _synced(self, milestones: set[int]) -> set[int]:
        """Return those of the milestones that nobody is rewriting."""
        ranges: dict[int, list[int]] = {}
        for index in sorted(milestones):
            ranges.setdefault(index // self._chunk_size, []).append(index)
        statement = "SELECT milestone_index FROM sync WHERE ms_range_id = ? AND milestone_index IN ?"
        return {
            row["milestone_index"]
            for number, indices in ranges.items()
            for row in self._rows(statement, number, indices)
        }

    def _milestone(self, index: int) -> list[Row]:
        if index not in self._held:
            return []
        rows = self._rows(
            "SELECT milestone_index, message_id, timestamp, payload, WRITETIME(payload) AS written "
            "FROM milestones WHERE milestone_index = ?",
            index,
        )
        return [row | {"message_id": row["message_id"] or None} for row in rows]

    def _kind_and_amount(self, data: bytes) -> dict[str, Any]:
        """Return an output's kind and amount: u64 behind the type, or behind type and address (TIP-8)."""
        at, kind = (1, _STARDUST_KINDS[data[0]]) if self._protocol == "stardust" else (34, "legacy")
        return {"kind": kind, "amount": int.from_bytes(data[at : at + 8], "little")}

    def _rows(self, statement: str, *values: object) -> list[Row]:
        return self._reader.rows(self._named(statement), values, self._deadline)

    def _stream(self, statement: str, *values: object) -> Iterator[Row]:
        return self._reader.stream(self._named(statement), values, self._deadline)

    def _named(self, statement: str) -> str:
        """Name the table of a statement with its keyspace, which comes from the settings."""
        return statement.replace(" FROM ", f" FROM {self._keyspace}.", 1)
