"""Reads that the routes of both protocols share. Ids here are as the lake has them: bare, lower-case."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from permalake.lake.serving import EVERYTHING, Scan
from permalake.web.paging import ListPage
from permalake.web.problems import ProblemError, not_found
from permalake.web.state import RequestLake

Row = dict[str, Any]

KINDS = ("basic", "alias", "foundry", "nft", "legacy", "treasury")
STATES = {0: "conflicting", 1: "included", 2: "noTransaction"}
"""``ledgerInclusionState`` by ``inclusion_state``."""


def days(lake: RequestLake) -> list[tuple[int, int]]:
    """Return the first and last milestone of every published day with milestones, in order."""

    def derive() -> list[tuple[int, int]]:
        found = lake.rows("SELECT start_ms, end_ms FROM date_cache ORDER BY start_ms", date_cache=EVERYTHING)
        return [(row["start_ms"], row["end_ms"]) for row in found]

    return lake.once("days", derive)


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
    found = ranges(lake)
    if not found:
        raise ProblemError(503, f"no day of {lake.network} is published yet")
    return found[0][1]


def message(lake: RequestLake, message_id: str, scan: Scan | None = None) -> Row:
    """Return a message's row; 404 where it is not published."""
    found = lake.rows(
        "SELECT message_id, message, milestone_index, white_flag_index, inclusion_state, conflict_reason "
        "FROM messages WHERE message_id = $id",
        {"id": message_id},
        messages=scan or lake.find("messages", "message_id", message_id),
    )
    if not found:
        raise not_found(message_id)
    return found[0]


def included_message(lake: RequestLake, transaction_id: str) -> Row:
    """Return the row of the message that made the transaction count; 404 where none is published.

    A transaction may sit in several messages, of which at most one is included.
    """
    found = lake.rows(
        "SELECT message_id, milestone_index FROM transactions "
        "WHERE transaction_id = $id AND inclusion_state = 1 LIMIT 1",
        {"id": transaction_id},
        transactions=lake.find("transactions", "transaction_id", transaction_id),
    )
    if not found:
        raise not_found(f"an included message of transaction {transaction_id}")
    return message(lake, found[0]["message_id"], Scan(milestones=[found[0]["milestone_index"]]))


def output(lake: RequestLake, output_id: str, kinds: Iterable[str] = KINDS[:5]) -> Row:
    """Return an output's row with its ``kind``; 404 where it is not published."""
    for kind in kinds:
        table = f"{kind}_outputs"
        scan = lake.find(table, "output_id", output_id)
        if scan.is_empty:
            continue
        own = ", message_id" if kind == "legacy" else ""
        found = lake.rows(
            f"SELECT output_id, '{kind}' AS kind, amount, data, milestone_index, ms_timestamp{own} "  # noqa: S608
            f"FROM {table} WHERE output_id = $id",
            {"id": output_id},
            **{table: scan},
        )
        if found:
            return found[0]
    raise not_found(output_id)


def spent(lake: RequestLake, output_ids: Sequence[str]) -> dict[str, Row]:
    """Return, of those outputs that are spent at the ledger index, who spent them and when, by output id."""
    places: set[int] = set()
    for output_id in output_ids:
        places.update(lake.find("consumed_outputs", "output_id", output_id).milestones or ())
    last = ledger_index(lake)
    places = {index for index in places if index <= last}
    if not places:
        return {}
    found = lake.rows(
        "SELECT output_id, transaction_id, message_id, milestone_index, ms_timestamp FROM consumed_outputs "
        "WHERE output_id IN (SELECT unnest($ids)) AND milestone_index <= $last",
        {"ids": list(output_ids), "last": last},
        consumed_outputs=Scan(milestones=sorted(places)),
    )
    return {row["output_id"]: row for row in found}


def milestone(lake: RequestLake, index: int) -> Row:
    """Return a milestone's row; 404 where it is not published."""
    found = lake.rows(
        "SELECT milestone_index, message_id, timestamp, payload FROM milestones "
        "WHERE milestone_index = $index",
        {"index": index},
        milestones=Scan(milestones=[index]),
    )
    if not found:
        raise not_found(f"milestone {index}")
    return found[0]


def listed(
    lake: RequestLake,
    table: str,
    lookup: tuple[str, str],
    page: ListPage,
    *,
    tie: str,
    newest: bool,
    columns: str,
    where: str = "true",
    parameters: dict[str, Any] | None = None,
) -> list[Row]:
    """Return one page, and one row more if there is one, of a table's rows with a value, by milestone.

    Only as many milestones are read as the page needs: the id index names those that hold such rows.

    Args:
        lake: The request's state.
        table: The table.
        lookup: A column of its ``lookups``, and the wanted value.
        page: The page; its position is (milestone, ``tie``).
        tie: Column that orders rows of a milestone.
        newest: Whether the newest comes first; the order is the exact reverse of the other.
        columns: Columns to select beside ``milestone_index`` and ``tie``.
        where: Further condition.
        parameters: What it binds.
    """
    column, value = lookup
    places = sorted(lake.find(table, column, value).milestones or (), reverse=newest)
    bound: dict[str, Any] = {"value": value, **(parameters or {})}
    behind = "true"
    if page.after:
        at, last = page.after
        places = [index for index in places if (index <= at if newest else index >= at)]
        compare = "<" if newest else ">"
        behind = f"(milestone_index, {tie}) {compare} ($at, $last)"
        bound |= {"at": at, "last": last}
    order = "DESC" if newest else "ASC"
    rows: list[Row] = []
    while places and len(rows) <= page.size:
        portion, places = places[: page.size + 1], places[page.size + 1 :]
        rows += lake.rows(
            f"SELECT {columns}, milestone_index, {tie} FROM {table} "  # noqa: S608
            f"WHERE {column} = $value AND {behind} AND {where} "
            f"ORDER BY milestone_index {order}, {tie} {order} LIMIT {page.size + 1 - len(rows)}",
            bound,
            **{table: Scan(milestones=portion)},
        )
    return rows


def utxo_changes(lake: RequestLake, index: int) -> tuple[list[str], list[str]]:
    """Return the outputs that a milestone created and consumed, treasury aside, in white-flag order.

    Outputs of one message follow their index, inputs their place in the transaction; a receipt's outputs
    come last. 404 where the milestone is not published.
    """
    milestone(lake, index)
    scan = Scan(milestones=[index])
    kinds = KINDS[:5]
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
    found = lake.rows("SELECT DISTINCT milestone_index FROM treasury_outputs", treasury_outputs=EVERYTHING)
    indices = sorted(row["milestone_index"] for row in found)
    rows = lake.rows(
        "SELECT payload FROM milestones WHERE milestone_index IN (SELECT unnest($indices)) "
        "ORDER BY milestone_index",
        {"indices": indices},
        milestones=Scan(milestones=indices),
    )
    return [row["payload"] for row in rows]


def treasury(lake: RequestLake) -> tuple[str, int]:
    """Return the milestone id and the amount of the treasury; zeros where there never was one."""
    found = lake.rows(
        "SELECT output_id, amount FROM treasury_outputs WHERE milestone_index <= $last "
        "ORDER BY milestone_index DESC LIMIT 1",
        {"last": ledger_index(lake)},
        treasury_outputs=EVERYTHING,
    )
    return (found[0]["output_id"], found[0]["amount"]) if found else ("0" * 64, 0)
