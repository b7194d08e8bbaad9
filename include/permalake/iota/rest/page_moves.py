"""What the explorer's pages show of moves of tokens: by one message, and over the history of an address."""

from __future__ import annotations

from typing import Any

from permalake.iota.codec.reasons import described
from permalake.iota.rest import ledger
from permalake.iota.rest.content_words import KINDS
from permalake.iota.rest.holdings import OWNERS, Holdings
from permalake.lake.serving import Scan
from permalake.web.state import RequestLake

MOST = 50
"""Outputs of a message that its page lists, created and consumed ones each."""
MOST_MOVES = 100
"""Moves of an address on its page."""
_CREATED = " UNION ALL ".join(
    f"SELECT output_id, '{table.removesuffix('_outputs')}' AS kind, amount, {owner} AS address, "  # noqa: S608
    f"milestone_index, ms_timestamp, message_id FROM {table}"
    for table, owner in OWNERS.items()
)
_CREATED_BY = (
    f"SELECT output_id, kind, amount, address FROM ({_CREATED}) WHERE message_id = $id "  # noqa: S608
    "ORDER BY output_id[67:68] || output_id[65:66]"
)
_CONSUMED_BY = (
    "SELECT output_id, kind, amount, address FROM consumed_outputs WHERE message_id = $id ORDER BY output_id"
)


def ledger_effect(lake: RequestLake, row: ledger.Row) -> dict[str, Any]:
    """Return what a message changed in the ledger: the outputs that it consumed and created.

    Returns:
        ``none``, why there is no effect, or None; ``consumed`` and ``created``, each ``{count, amount,
        outputs}`` of which :data:`MOST` are listed.
    """
    state = ledger.STATES[row["inclusion_state"]]
    if state != "included":
        reason = f"conflict reason {described(row['conflict_reason'])}" if state == "conflicting" else None
        return {
            "none": reason or "it carries no transaction",
            "consumed": _listed([]),
            "created": _listed([]),
        }
    scan, bound = Scan(milestones=[row["milestone_index"]]), {"id": row["message_id"]}
    return {
        "none": None,
        "consumed": _listed(lake.rows(_CONSUMED_BY, bound, consumed_outputs=scan)),
        "created": _listed(lake.rows(_CREATED_BY, bound, **dict.fromkeys(OWNERS, scan))),
    }


def _listed(rows: list[ledger.Row]) -> dict[str, Any]:
    return {
        "count": len(rows),
        "amount": str(sum(row["amount"] for row in rows)),
        "outputs": [
            {
                "id": row["output_id"],
                "kind": row["kind"],
                "kind_words": KINDS[row["kind"]],
                "amount": str(row["amount"]),
                "address": row["address"],
            }
            for row in rows[:MOST]
        ],
    }


def history_of_holdings(found: Holdings) -> dict[str, Any]:
    """Return the newest transactions that an address received or spent in, and the sum of each for it.

    Returns:
        ``moves``, newest first, whose ``message_id`` is None where a receipt migrated funds; ``count``: of
        all.
    """
    moves = found.moves()
    return {
        "moves": [
            move
            | {
                "time": move["time"].strftime("%Y-%m-%d %H:%M:%S"),
                "change": str(move["change"]),
                "balance": str(move["balance"]),
            }
            for move in moves[:MOST_MOVES]
        ],
        "count": len(moves),
    }
