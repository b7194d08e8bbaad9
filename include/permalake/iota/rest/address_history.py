"""An address's history in Chrysalis' dialect (inx-api-core-v1): what moved its funds, and what failed to."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal, NotRequired

from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from permalake.iota.rest import ledger
from permalake.iota.rest.chrysalis_answers import ConflictReason
from permalake.iota.rest.holdings import since
from permalake.iota.rest.paged_rows import paged_rows
from permalake.iota.rest.parameters import NodePage
from permalake.iota.rest.stardust_answers import MilestoneIndex
from permalake.lake.serving import Scan
from permalake.web.answers import Bytes32, Count, Cursor, PageSize, Seconds
from permalake.web.paging import ListPage
from permalake.web.responses import current, wants
from permalake.web.state import RequestLake

_TABLES = ("legacy_outputs", "consumed_outputs", "conflicting_transactions")
"""Tables that name the address of a message."""
_MOVES = """
WITH moves AS (
    SELECT milestone_index, coalesce(message_id, carrier_id) AS message_id, message_id IS NULL AS migrated,
        NULL AS conflict_reason, ms_timestamp, amount AS change, left(output_id, 64) AS source
    FROM legacy_outputs
    LEFT JOIN (SELECT milestone_index AS at, message_id AS carrier_id FROM milestones) AS carrier
        ON carrier.at = legacy_outputs.milestone_index
    WHERE address = $address
    UNION ALL
    SELECT milestone_index, message_id, false, NULL, ms_timestamp, -amount, transaction_id
    FROM consumed_outputs WHERE address = $address AND message_id IS NOT NULL
    UNION ALL
    SELECT milestone_index, message_id, false, conflict_reason, ms_timestamp, amount, transaction_id
    FROM conflicting_transactions WHERE address = $address
),
sums AS (
    SELECT milestone_index, message_id, bool_or(migrated) AS migrated,
        max(conflict_reason) AS conflict_reason, any_value(source) AS source,
        any_value(ms_timestamp) AS ms_timestamp, CAST(sum(change) AS BIGINT) AS change
    FROM moves GROUP BY milestone_index, message_id
),
parts AS (
    SELECT message_id, count(*) FILTER (variant = 'input') AS inputs,
        count(*) FILTER (variant = 'output') AS outputs
    FROM transactions GROUP BY message_id
),
receipts AS (
    SELECT milestone_index AS booked_in, count(*) AS funds
    FROM legacy_outputs WHERE message_id IS NULL GROUP BY milestone_index
)
SELECT sums.*, CASE WHEN migrated THEN 1 ELSE coalesce(inputs, 0) END AS inputs,
    CASE WHEN migrated THEN funds ELSE coalesce(outputs, 0) END AS outputs
FROM sums LEFT JOIN parts USING (message_id)
LEFT JOIN receipts ON migrated AND booked_in = sums.milestone_index
"""
"""The messages of an address, each with what it changed. A receipt takes the treasury for its funds."""


class HistoryEntry(TypedDict):
    """What a message moved or tried to move; the change in base tokens."""

    messageId: Bytes32
    transactionId: Bytes32
    referencedByMilestoneIndex: MilestoneIndex
    milestoneTimestampReferenced: Seconds
    ledgerInclusionState: Literal["included", "conflicting", "migrated"]
    conflictReason: NotRequired[ConflictReason]
    inputsCount: Count
    outputsCount: Count
    addressBalanceChange: int


class AddressHistory(TypedDict):
    """A page of what moved or tried to move funds of an address."""

    addressType: Literal[0]
    address: Bytes32
    maxResults: PageSize
    count: Count
    ledgerIndex: MilestoneIndex
    sinceMilestone: MilestoneIndex
    history: list[HistoryEntry]
    cursor: NotRequired[Cursor]


def history_of(request: Request, lake: RequestLake, target: tuple[str, str], query: NodePage) -> Response:
    """Answer a page of the messages that moved or tried to move funds of an address, as JSON or CSV.

    ``target`` is the address in bech32 and as hex of its 32 bytes.
    """
    page = query.asked(lake, {"address": target[1]})
    rows = _moves(lake, target[0], page, newest=query.newest)
    shown, cursor = page.cut(rows, lambda row: (row["milestone_index"], row["message_id"]))
    attempted = _attempted(lake, target[0], shown)
    entries = [_entry(row, attempted[row["message_id"]]) for row in shown]
    last = ledger.ledger_index(lake)
    if wants(request, ("text/csv",)):
        return current(request, lake.snapshot.publication, _csv(entries), "text/csv")
    data = {
        "addressType": 0,
        "address": target[1],
        "maxResults": page.size,
        "count": len(entries),
        "ledgerIndex": last,
        "sinceMilestone": since(lake),
        "history": entries,
        **({"cursor": cursor} if cursor else {}),
    }
    return lake.current({"data": data})


def _moves(lake: RequestLake, address: str, page: ListPage, *, newest: bool) -> list[ledger.Row]:
    """Return the messages of an address, one more than the page holds."""
    last = ledger.ledger_index(lake)
    milestones = {
        index for table in _TABLES for index in lake.find(table, "address", address).milestones or ()
    }
    return paged_rows(
        lake,
        page,
        {index for index in milestones if index <= last},
        _MOVES,
        {"address": address},
        tables=(*_TABLES, "transactions", "milestones"),
        ties=("message_id",),
        newest=newest,
    )


def _attempted(lake: RequestLake, address: str, rows: Sequence[ledger.Row]) -> Counter[str]:
    """Return what conflicting messages would have spent of an address, by message.

    Inputs that the ledger does not know count for nothing.
    """
    failed = {row["message_id"]: row["milestone_index"] for row in rows if _conflicts(row)}
    spent: Counter[str] = Counter()
    if not failed:
        return spent
    inputs = lake.rows(
        "SELECT message_id, lower(hex(data))[3:] AS output_id FROM transactions "
        "WHERE variant = 'input' AND message_id IN (SELECT unnest($messages))",
        {"messages": list(failed)},
        transactions=Scan(milestones=sorted(set(failed.values()))),
    )
    ids = sorted({row["output_id"] for row in inputs})
    places = ledger.places_of(lake, "legacy_outputs", ids)
    owned = lake.rows(
        "SELECT output_id, amount FROM legacy_outputs "
        "WHERE address = $address AND output_id IN (SELECT unnest($ids))",
        {"address": address, "ids": ids},
        legacy_outputs=Scan(milestones=sorted(places)),
    )
    amounts = {row["output_id"]: int(row["amount"]) for row in owned}
    for row in inputs:
        spent[row["message_id"]] += amounts.get(row["output_id"], 0)
    return spent


def _conflicts(row: ledger.Row) -> bool:
    return row["conflict_reason"] is not None


def _entry(row: ledger.Row, attempted: int) -> dict[str, Any]:
    """Return an entry; ``attempted``: what a conflicting transaction would have spent."""
    state = "migrated" if row["migrated"] else "conflicting" if _conflicts(row) else "included"
    return {
        "messageId": row["message_id"],
        "transactionId": row["source"],
        "referencedByMilestoneIndex": row["milestone_index"],
        "milestoneTimestampReferenced": int(row["ms_timestamp"].timestamp()),
        "ledgerInclusionState": state,
        **({"conflictReason": row["conflict_reason"]} if _conflicts(row) else {}),
        "inputsCount": row["inputs"],
        "outputsCount": row["outputs"],
        "addressBalanceChange": row["change"] - attempted,
    }


def _csv(entries: list[dict[str, Any]]) -> bytes:
    names = (
        *("messageId", "transactionId", "referencedByMilestoneIndex", "milestoneTimestampReferenced"),
        *("ledgerInclusionState", "conflictReason", "inputsCount", "outputsCount", "addressBalanceChange"),
    )
    text = io.StringIO()
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(entries)
    return text.getvalue().encode()
