"""Reads that the routes of both protocols share. Ids here are as the lake has them: bare, lower-case."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from permalake.contracts.rows import Row
from permalake.iota.contracts.columns import MAX_U32
from permalake.iota.contracts.unreferenced import UNREFERENCED_MESSAGES
from permalake.iota.rest.cassandra_ledger import CassandraLedger, held_milestones
from permalake.iota.rest.lake_ledger import LakeLedger
from permalake.iota.rest.ledger_reader import KINDS, OWNED_KINDS, LedgerList, LedgerReader
from permalake.lake.serving import EVERYTHING, Scan
from permalake.stores.readers import StoreReaders
from permalake.web.paging import ListPage
from permalake.web.problems import ProblemError
from permalake.web.state import RequestLake, check_time, not_at_once

__all__ = ["KINDS", "OWNED_KINDS", "LedgerList", "Row"]
STATES: dict[int | None, Literal["conflicting", "included", "noTransaction"] | None] = {
    0: "conflicting",
    1: "included",
    2: "noTransaction",
    None: None,
}
"""``ledgerInclusionState`` by ``inclusion_state``; None: no milestone references the message yet."""
_UNREFERENCED = UNREFERENCED_MESSAGES.name
_BETWEEN_CHECKS = 1000
"""Ids that are looked up before it is checked whether the request has time left."""


def days(lake: RequestLake) -> list[tuple[int, int]]:
    """Return the first and last milestone of every published day with milestones, in order."""

    def derive() -> list[tuple[int, int]]:
        rows = lake.rows("SELECT start_ms, end_ms FROM date_cache ORDER BY start_ms", date_cache=EVERYTHING)
        rows += _days_of_head(lake) if lake.snapshot.has_head else []
        return sorted((row["start_ms"], row["end_ms"]) for row in rows)

    return lake.once("days", derive)


def _days_of_head(lake: RequestLake) -> list[Row]:
    held = lake.snapshot.head_days
    return lake.rows(
        "SELECT min(milestone_index) AS start_ms, max(milestone_index) AS end_ms FROM milestones "
        "WHERE date IN (SELECT unnest($days)) GROUP BY date",
        {"days": sorted(held)},
        milestones=Scan(days=held),
    )


def ranges(lake: RequestLake) -> list[tuple[int, int]]:
    """Return the published milestones as ranges without a gap, both ends inclusive."""
    joined: list[tuple[int, int]] = []
    for first, last in days(lake):
        if joined and joined[-1][1] + 1 == first:
            joined[-1] = (joined[-1][0], last)
        else:
            joined.append((first, last))
    return joined


def ledger_index(lake: RequestLake) -> int:
    """Return the milestone whose ledger is answered: the last one before the first gap.

    Raises:
        ProblemError: 503 where no day is published.
    """
    held = ranges(lake)
    if not held:
        raise ProblemError(503, f"no day of {lake.network} is published yet")
    return held[0][1]


def reader_of(lake: RequestLake) -> LedgerReader:
    """Return the backend that reads single rows and lists of the request's network; of a head the lake."""
    if lake.snapshot.has_head:
        return LakeLedger(lake)
    stores: StoreReaders = lake.request.app.state.stores
    whole = stores.whole(lake.network)
    if whole is None or stores.cassandra is None:
        return LakeLedger(lake)
    not_at_once(lake)
    held = held_milestones(lake, whole)
    return CassandraLedger(lake, stores.cassandra, held) if held.starts else LakeLedger(lake)


def message(lake: RequestLake, message_id: str) -> Row:
    """Return a message's row; 404 where it is not published."""
    return reader_of(lake).message(message_id)


def any_message(lake: RequestLake, message_id: str) -> Row:
    """Return a message's row, also of one that no milestone references yet, which only a head has.

    Such a one has no milestone_index and inclusion_state (None); beside the columns of others it has
    est_milestone_index and seen_at. 404 where there is neither.
    """
    try:
        return message(lake, message_id)
    except ProblemError as missing:
        unreferenced = _unreferenced(lake, message_id) if missing.status == 404 else []
        if not unreferenced:
            raise
        return unreferenced[0]


def _unreferenced(lake: RequestLake, message_id: str) -> list[Row]:
    if lake.snapshot.table(lake.network, _UNREFERENCED) is None:
        return []
    return lake.rows(
        "SELECT message_id, message, NULL AS milestone_index, NULL AS white_flag_index, "  # noqa: S608
        "NULL AS inclusion_state, 0 AS conflict_reason, est_milestone_index, seen_at "
        f"FROM {_UNREFERENCED} WHERE message_id = $id",
        {"id": message_id},
        **{_UNREFERENCED: EVERYTHING},
    )


def white_flag_index(lake: RequestLake, row: Row) -> int:
    """Return the place of a message in its milestone, from its row where the backend has it there."""
    if "white_flag_index" in row:
        return int(row["white_flag_index"])
    rows = lake.rows(
        "SELECT white_flag_index FROM messages WHERE message_id = $id",
        {"id": row["message_id"]},
        messages=Scan(milestones=[row["milestone_index"]]),
    )
    return int(rows[0]["white_flag_index"])


def included_message(lake: RequestLake, transaction_id: str) -> Row:
    """Return the message with which a transaction was included; 404 where there is none."""
    return reader_of(lake).included_message(transaction_id)


def output(lake: RequestLake, output_id: str, kinds: Iterable[str] = OWNED_KINDS) -> Row:
    """Return an output's row with its ``kind``; 404 where it is not published."""
    return reader_of(lake).output(output_id, kinds)


def milestone(lake: RequestLake, index: int) -> Row:
    """Return a milestone's row; 404 where it is not published."""
    return reader_of(lake).milestone(index)


def listed(lake: RequestLake, question: LedgerList, page: ListPage) -> list[Row]:
    """Return one page of a list, and one row more if there is one."""
    return reader_of(lake).listed(question, page)


def spender(lake: RequestLake, output: Row) -> Row | None:
    """Return who spent an output by the ledger index; of one that was made after it, who spent it at all."""
    last = ledger_index(lake)
    spenders = spent(lake, [output["output_id"]], last if output["milestone_index"] <= last else MAX_U32)
    return spenders.get(output["output_id"])


def spent(lake: RequestLake, output_ids: Sequence[str], last: int | None = None) -> dict[str, Row]:
    """Return who spent those outputs that are spent at a milestone, and when, by output id.

    ``last``: the milestone; the ledger index unless given.
    """
    last = ledger_index(lake) if last is None else last
    places = {index for index in places_of(lake, "consumed_outputs", output_ids) if index <= last}
    if not places:
        return {}
    rows = lake.rows(
        "SELECT output_id, transaction_id, message_id, milestone_index, ms_timestamp FROM consumed_outputs "
        "WHERE output_id IN (SELECT unnest($ids)) AND milestone_index <= $last",
        {"ids": list(output_ids), "last": last},
        consumed_outputs=Scan(milestones=sorted(places)),
    )
    return {row["output_id"]: row for row in rows}


def places_of(lake: RequestLake, table: str, output_ids: Sequence[str]) -> set[int]:
    """Return the milestones where a table may have one of these outputs, by the id index.

    Raises:
        QueryTimeoutError: if the request's time is up before all are looked up.
    """
    places: set[int] = set()
    for number, output_id in enumerate(output_ids):
        if number % _BETWEEN_CHECKS == 0:
            check_time(lake)
        places.update(lake.find(table, "output_id", output_id).milestones or ())
    return places


def utxo_changes(lake: RequestLake, index: int) -> tuple[list[str], list[str]]:
    """Return the outputs that a milestone created and consumed, treasury aside, in white-flag order.

    Outputs of one message follow their index, inputs their place in the transaction; a receipt's outputs
    come last. 404 where the milestone is not published.
    """
    milestone(lake, index)
    scan = Scan(milestones=[index])
    kinds = OWNED_KINDS
    created = " UNION ALL ".join(f"SELECT output_id FROM {kind}_outputs" for kind in kinds)  # noqa: S608
    included = (
        "included AS (SELECT DISTINCT transaction_id, white_flag_index FROM transactions JOIN messages "
        "USING (message_id) WHERE transactions.inclusion_state = 1)"
    )
    order = "coalesce(white_flag_index, 2147483647)"
    made = lake.rows(
        f"WITH {included}, created AS ({created}) SELECT output_id FROM created LEFT JOIN included "  # noqa: S608
        f"ON left(output_id, 64) = transaction_id ORDER BY {order}, left(output_id, 64), "
        "output_id[67:68] || output_id[65:66]",
        {},
        transactions=scan,
        messages=scan,
        **{f"{kind}_outputs": scan for kind in kinds},
    )
    used = lake.rows(
        f"WITH {included}, used AS (SELECT transaction_id, idx, lower(hex(data))[3:] AS output_id "  # noqa: S608
        "FROM transactions WHERE variant = 'input' AND inclusion_state = 1) "
        "SELECT consumed.output_id FROM consumed_outputs AS consumed LEFT JOIN used "
        "ON used.output_id = consumed.output_id AND used.transaction_id = consumed.transaction_id "
        "LEFT JOIN included ON included.transaction_id = consumed.transaction_id "
        f"WHERE kind <> 'treasury' ORDER BY {order}, used.idx, consumed.output_id",
        transactions=scan,
        messages=scan,
        consumed_outputs=scan,
    )
    return [row["output_id"] for row in made], [row["output_id"] for row in used]


def receipt_payloads(lake: RequestLake) -> list[bytes]:
    """Return the payloads of the milestones with a receipt, in order: each made a treasury output."""
    carriers = lake.rows("SELECT DISTINCT milestone_index FROM treasury_outputs", treasury_outputs=EVERYTHING)
    indices = sorted(row["milestone_index"] for row in carriers)
    rows = lake.rows(
        "SELECT payload FROM milestones WHERE milestone_index IN (SELECT unnest($indices)) "
        "ORDER BY milestone_index",
        {"indices": indices},
        milestones=Scan(milestones=indices),
    )
    return [row["payload"] for row in rows]


def treasury(lake: RequestLake) -> tuple[str, int]:
    """Return the milestone id and the amount of the treasury; zeros where there never was one."""
    rows = lake.rows(
        "SELECT output_id, amount FROM treasury_outputs WHERE milestone_index <= $last "
        "ORDER BY milestone_index DESC LIMIT 1",
        {"last": ledger_index(lake)},
        treasury_outputs=EVERYTHING,
    )
    return (rows[0]["output_id"], rows[0]["amount"]) if rows else ("0" * 64, 0)
