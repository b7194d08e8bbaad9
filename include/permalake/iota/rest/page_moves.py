"""What the explorer's pages show of moves of tokens: by one message, and over the history of an address."""

from __future__ import annotations

from typing import Any

from permalake.iota.codec.reasons import described
from permalake.iota.rest import ledger
from permalake.lake.serving import Scan
from permalake.web.state import RequestLake

MOST = 50
"""Outputs of a message that its page lists, created and consumed ones each."""
MOST_MOVES = 100
"""Moves of an address on its page."""
_OWNERS = {
    f"{kind}_outputs": "state_controller" if kind == "alias" else "address" for kind in ledger.OWNED_KINDS
}
"""Tables of outputs, and the column of whoever owns a created one."""
_CREATED = " UNION ALL ".join(
    f"SELECT output_id, '{table.removesuffix('_outputs')}' AS kind, amount, {owner} AS address, "  # noqa: S608
    f"milestone_index, ms_timestamp, message_id FROM {table}"
    for table, owner in _OWNERS.items()
)
_CREATED_BY = (
    f"SELECT output_id, kind, amount, address FROM ({_CREATED}) WHERE message_id = $id "  # noqa: S608
    "ORDER BY output_id[67:68] || output_id[65:66]"
)
_CONSUMED_BY = (
    "SELECT output_id, kind, amount, address FROM consumed_outputs WHERE message_id = $id ORDER BY output_id"
)
_MOVES = f"""WITH moves AS (
  SELECT milestone_index, ms_timestamp, left(output_id, 64) AS transaction_id, message_id, amount AS change
  FROM ({_CREATED}) WHERE address = $address
  UNION ALL
  SELECT milestone_index, ms_timestamp, transaction_id, message_id, -amount
  FROM consumed_outputs WHERE address = $address AND kind <> 'treasury')
SELECT milestone_index, transaction_id, any_value(message_id) AS message_id,
  any_value(ms_timestamp) AS time, CAST(sum(change) AS BIGINT) AS change,
  count(*) FILTER (change >= 0) AS received, count(*) FILTER (change < 0) AS spent
FROM moves GROUP BY milestone_index, transaction_id
ORDER BY milestone_index DESC, transaction_id LIMIT $most"""  # noqa: S608


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
        "created": _listed(lake.rows(_CREATED_BY, bound, **dict.fromkeys(_OWNERS, scan))),
    }


def _listed(rows: list[ledger.Row]) -> dict[str, Any]:
    return {
        "count": len(rows),
        "amount": str(sum(row["amount"] for row in rows)),
        "outputs": [
            {
                "id": row["output_id"],
                "kind": row["kind"],
                "amount": str(row["amount"]),
                "address": row["address"],
            }
            for row in rows[:MOST]
        ],
    }


def address_history(lake: RequestLake, address: str) -> dict[str, Any]:
    """Return the newest transactions that an address received or spent in, and the sum of each for it.

    Returns:
        ``moves``, newest first, whose ``message_id`` is None where a receipt migrated funds; ``complete``,
        whether these are all.
    """
    last = ledger.ledger_index(lake)
    columns = {**_OWNERS, "consumed_outputs": "address"}
    found = (lake.find(table, column, address).milestones or () for table, column in columns.items())
    places = sorted({index for some in found for index in some if index <= last}, reverse=True)
    if not places:
        return {"moves": [], "complete": True}
    rows = lake.rows(
        _MOVES,
        {"address": address, "most": MOST_MOVES + 1},
        **dict.fromkeys(columns, Scan(milestones=places[:MOST_MOVES])),
    )
    return {
        "moves": [
            {
                "milestone_index": row["milestone_index"],
                "time": row["time"].strftime("%Y-%m-%d %H:%M:%S"),
                "transaction_id": row["transaction_id"],
                "message_id": row["message_id"],
                "change": str(row["change"]),
                "received": row["received"],
                "spent": row["spent"],
            }
            for row in rows[:MOST_MOVES]
        ],
        "complete": len(places) <= MOST_MOVES and len(rows) <= MOST_MOVES,
    }
