"""What the explorer's pages show of moves of tokens: by one message, and over the history of an address."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import accumulate
from typing import Any

from markupsafe import Markup

from permalake.iota.codec.reasons import described
from permalake.iota.rest import ledger
from permalake.iota.rest.content_words import KINDS
from permalake.iota.rest.holdings import OWNERS, Holdings
from permalake.iota.rest.token_holdings import TOKEN_KINDS, tokens_of_bytes
from permalake.lake.serving import Scan
from permalake.web.charts import bars
from permalake.web.numbers import CoinUnit, formatted, tick
from permalake.web.state import RequestLake

MOST = 50
"""Outputs of a message that its page lists, created and consumed ones each."""
MOST_MOVES = 100
"""Moves of an address on its page."""
_CREATED = " UNION ALL ".join(
    f"SELECT output_id, '{table.removesuffix('_outputs')}' AS kind, amount, {owner} AS address, "  # noqa: S608
    f"milestone_index, ms_timestamp, message_id, data FROM {table}"
    for table, owner in OWNERS.items()
)
_CREATED_BY = (
    f"SELECT output_id, kind, amount, address, data FROM ({_CREATED}) WHERE message_id = $id "  # noqa: S608
    "ORDER BY output_id[67:68] || output_id[65:66]"
)
_CONSUMED_BY = (
    "SELECT output_id, kind, amount, address, data FROM consumed_outputs "
    "WHERE message_id = $id ORDER BY output_id"
)
_TOKENS = (
    "SELECT output_id, token_id AS id, amount FROM native_tokens WHERE is_spent = 1 "
    "AND output_id IN (SELECT unnest($outputs)) ORDER BY token_id"
)


def ledger_effect(lake: RequestLake, row: ledger.Row) -> dict[str, Any]:
    """Return what a message changed in the ledger: the outputs that it consumed and created.

    Returns:
        ``none``, why there is no effect, or None; ``consumed`` and ``created``, each ``{count, amount,
        outputs}`` of which :data:`MOST` are listed.
    """
    state = ledger.STATES[row["inclusion_state"]]
    if state != "included":
        reasons = {
            "conflicting": f"conflict reason {described(row['conflict_reason'])}",
            "noTransaction": "it carries no transaction",
        }
        return {
            "none": reasons.get(state or "", "no milestone references it yet"),
            "consumed": _listed([]),
            "created": _listed([]),
        }
    scan, bound = Scan(milestones=[row["milestone_index"]]), {"id": row["message_id"]}
    return {
        "none": None,
        "consumed": _listed(*_consumed(lake, bound, scan)),
        "created": _listed(lake.rows(_CREATED_BY, bound, **dict.fromkeys(OWNERS, scan))),
    }


def _consumed(
    lake: RequestLake, bound: dict[str, Any], scan: Scan
) -> tuple[list[ledger.Row], dict[str, list[dict[str, str]]]]:
    """Return what a message consumed, and the tokens of outputs whose bytes the lake lacks, by output id."""
    rows = lake.rows(_CONSUMED_BY, bound, consumed_outputs=scan)
    bare = [row["output_id"] for row in rows[:MOST] if row["data"] is None and row["kind"] in TOKEN_KINDS]
    tokens_of: dict[str, list[dict[str, str]]] = {}
    for row in lake.rows(_TOKENS, {"outputs": bare}, native_tokens=scan) if bare else ():
        tokens_of.setdefault(row["output_id"], []).append({"id": row["id"], "amount": row["amount"]})
    return rows, tokens_of


def _listed(
    rows: list[ledger.Row], tokens_of: Mapping[str, list[dict[str, str]]] | None = None
) -> dict[str, Any]:
    """Return outputs; ``tokens`` of one are None where not known, ``tokens_of`` has others."""
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
                "tokens": _tokens(row, tokens_of or {}),
            }
            for row in rows[:MOST]
        ],
    }


def _tokens(row: ledger.Row, tokens_of: Mapping[str, list[dict[str, str]]]) -> list[dict[str, str]] | None:
    if row["kind"] not in TOKEN_KINDS:
        return []
    return tokens_of.get(row["output_id"]) if row["data"] is None else tokens_of_bytes(row["data"])


def history_of_holdings(lake: RequestLake, holdings: Holdings, coin: CoinUnit) -> dict[str, Any]:
    """Return the newest transactions that an address received or spent in, and the sum of each for it.

    Returns:
        ``moves``, newest first, whose ``message_id`` is None where a receipt migrated funds, with the native
        tokens that the address gained or lost; ``count``: of all; ``balances``: a chart of all days from the
        first move to the last one, None where these are of one day.
    """
    moves = holdings.moves()
    tokens = _moved_tokens(lake, holdings, moves[:MOST_MOVES])
    return {
        "moves": [
            move
            | {
                "time": move["time"].strftime("%Y-%m-%d %H:%M:%S"),
                "change": str(move["change"]),
                "balance": str(move["balance"]),
                "tokens": tokens.get(move["transaction_id"], []),
            }
            for move in moves[:MOST_MOVES]
        ],
        "count": len(moves),
        "balances": _balances(moves, coin),
    }


def _balances(moves: Sequence[Mapping[str, Any]], coin: CoinUnit) -> Markup | None:
    """Draw the balance after the last move of each day; a day without one has that of the day before."""
    at_end = {move["time"].date(): move["balance"] for move in reversed(moves)}
    if len(at_end) < 2:
        return None
    first, last = min(at_end), max(at_end)
    days = [first + timedelta(number) for number in range((last - first).days + 1)]
    return bars(
        [day.isoformat() for day in days],
        {"balance": list(accumulate(days, lambda held, day: at_end.get(day, held), initial=0))[1:]},
        label=lambda value: formatted(value, "tokens", coin),
        parts=False,
        title="Balance at the end of each day",
        tick=lambda value: tick(value, "tokens", coin),
    )


def _moved_tokens(
    lake: RequestLake, holdings: Holdings, moves: list[dict[str, Any]]
) -> dict[str, list[dict[str, str]]]:
    """Return what an address gained (below zero: lost) of native tokens, by transaction."""
    moved_ids = {row["output_id"] for row in (*holdings.created, *holdings.before)}
    rows = lake.rows(
        "SELECT output_id, transaction_id, token_id, is_spent, amount FROM native_tokens "
        "WHERE transaction_id IN (SELECT unnest($transactions))",
        {"transactions": [move["transaction_id"] for move in moves]},
        native_tokens=Scan(milestones=sorted({move["milestone_index"] for move in moves})),
    )
    sums: dict[str, Counter[str]] = {}
    for row in rows:
        if row["output_id"] in moved_ids:
            change = int(row["amount"]) * (-1 if row["is_spent"] else 1)
            sums.setdefault(row["transaction_id"], Counter())[row["token_id"]] += change
    return {
        transaction: [{"id": token, "amount": str(sum_)} for token, sum_ in sorted(changes.items()) if sum_]
        for transaction, changes in sums.items()
    }
