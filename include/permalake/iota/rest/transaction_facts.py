"""What the explorer's pages show of a transaction: its messages, included or not, and what it moved."""

from __future__ import annotations

from typing import Any

from permalake.iota.codec.reasons import described
from permalake.iota.rest import ledger
from permalake.iota.rest.page_facts import message_facts, time_of
from permalake.web.problems import not_found
from permalake.web.state import RequestLake

MOST = 50
"""Messages of a transaction that its page lists."""


def is_transaction(lake: RequestLake, transaction_id: str) -> bool:
    """Return whether a published message carries a transaction."""
    return bool(_messages(lake, transaction_id))


def transaction_facts(lake: RequestLake, transaction_id: str) -> dict[str, Any]:
    """Return a transaction with every message that carries it; 404 where none is published.

    ``message``: the facts of the one with which it was included, else of the first one.
    """
    rows = _messages(lake, transaction_id)
    if not rows:
        raise not_found(f"transaction {transaction_id}")
    carriers = [ledger.message(lake, row["message_id"]) for row in rows[:MOST]]
    main = next((row for row in carriers if row["inclusion_state"] == 1), carriers[0])
    return {
        "id": transaction_id,
        "message": message_facts(lake, main),
        "count": len(rows),
        "messages": [
            {
                "id": row["message_id"],
                "milestone_index": row["milestone_index"],
                **time_of(ledger.milestone(lake, row["milestone_index"])["timestamp"]),
                "state": ledger.STATES[row["inclusion_state"]],
                "conflict": described(row["conflict_reason"]) if row["inclusion_state"] == 0 else None,
            }
            for row in carriers
        ],
    }


def _messages(lake: RequestLake, transaction_id: str) -> list[ledger.Row]:
    """Return the messages of a transaction, the included one first."""
    scan = lake.find("transactions", "transaction_id", transaction_id)
    if scan.is_empty:
        return []
    return lake.rows(
        "SELECT message_id, max(inclusion_state) AS state, min(milestone_index) AS milestone_index "
        "FROM transactions WHERE transaction_id = $id GROUP BY message_id "
        "ORDER BY state DESC, milestone_index, message_id",
        {"id": transaction_id},
        transactions=scan,
    )
