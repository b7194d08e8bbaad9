"""What the page of a native token (TIP-18) shows: who holds it, in which outputs, and what moved it.

All of it follows from the outputs that the lake saw created, so that a token whose foundry is older than the
lake has a page too. What was held before the lake's first milestone is not known, so sums are at least those.
"""

from __future__ import annotations

from typing import Any

from permalake.iota.contracts.movements import NATIVE_TOKENS
from permalake.iota.rest import ledger
from permalake.iota.rest.holdings import since
from permalake.web.state import RequestLake

MOST = 100
"""Holders, outputs and moves of a token that its page lists, each."""
_SECONDS = "%Y-%m-%d %H:%M:%S"
_MOVED = "(SELECT * FROM native_tokens WHERE token_id = $id AND milestone_index <= $last)"
_HELD = (
    f"(SELECT * FROM {_MOVED} AS created WHERE is_spent = 0 AND NOT EXISTS "  # noqa: S608
    f"(FROM {_MOVED} AS spent WHERE spent.is_spent = 1 AND spent.output_id = created.output_id))"
)
_SUM = "CAST(coalesce(sum(CAST(amount AS BIGNUM)){of}, CAST(0 AS BIGNUM)) AS VARCHAR)"
_TOTALS = (
    f"SELECT count(*) AS outputs, count(DISTINCT address) AS holders, {_SUM.format(of='')} AS amount "  # noqa: S608
    f"FROM {_HELD}"
)
_HOLDERS = (
    f"SELECT address, count(*) AS outputs, {_SUM.format(of='')} AS amount FROM {_HELD} "  # noqa: S608
    "GROUP BY address ORDER BY sum(CAST(amount AS BIGNUM)) DESC, address LIMIT $most"
)
_OUTPUTS = (
    f"SELECT output_id, address, amount, milestone_index, ms_timestamp FROM {_HELD} "  # noqa: S608
    "ORDER BY milestone_index DESC, output_id LIMIT $most"
)
_MOVES = (
    "SELECT transaction_id, milestone_index, ms_timestamp, count(*) OVER () AS moves, "  # noqa: S608
    f"{_SUM.format(of=' FILTER (is_spent = 1)')} AS consumed, "
    f"{_SUM.format(of=' FILTER (is_spent = 0)')} AS created "
    f"FROM {_MOVED} GROUP BY transaction_id, milestone_index, ms_timestamp "
    "ORDER BY milestone_index DESC, transaction_id LIMIT $most"
)


def is_token(lake: RequestLake, token_id: str) -> bool:
    """Return whether an output of the lake held a native token."""
    return not lake.find(NATIVE_TOKENS.name, "token_id", token_id).is_empty and bool(
        _asked(lake, token_id, f"SELECT 1 FROM {_MOVED} LIMIT $most", 1)  # noqa: S608
    )


def token_facts(lake: RequestLake, token_id: str) -> dict[str, Any] | None:
    """Return holders, unspent outputs and moves of a token; None where no output of the lake held it.

    Amounts are text, in the token's smallest unit; lists have :data:`MOST` rows, counts count all.
    """
    moves = _asked(lake, token_id, _MOVES, MOST)
    if not moves:
        return None
    [totals] = _asked(lake, token_id, _TOTALS)
    return {
        "since": since(lake),
        "amount": totals["amount"],
        "holder_count": totals["holders"],
        "holders": _asked(lake, token_id, _HOLDERS, MOST),
        "output_count": totals["outputs"],
        "outputs": [_timed(row) for row in _asked(lake, token_id, _OUTPUTS, MOST)],
        "move_count": moves[0]["moves"],
        "moves": [_timed(row) for row in moves],
    }


def _asked(lake: RequestLake, token_id: str, sql: str, most: int | None = None) -> list[ledger.Row]:
    bound = {"id": token_id, "last": ledger.ledger_index(lake)} | ({"most": most} if most else {})
    scan = lake.find(NATIVE_TOKENS.name, "token_id", token_id)
    return [] if scan.is_empty else lake.rows(sql, bound, native_tokens=scan)


def _timed(row: ledger.Row) -> ledger.Row:
    return row | {"ms_timestamp": row["ms_timestamp"].strftime(_SECONDS)}
