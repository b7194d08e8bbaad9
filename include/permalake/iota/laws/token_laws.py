"""Laws of native tokens: transactions keep them, but for their foundries (TIP-18)."""

from __future__ import annotations

from collections.abc import Iterator

from permalake.audit.laws import balance, by, covered, each_row, side, union, violations
from permalake.contracts.rows import Row
from permalake.iota.laws.tangle_sides import SPENT

_HOLDERS = ("basic", "alias", "foundry", "nft")
_SPENDING = "output_id || ' by ' || transaction_id"
# How many native tokens each output holds, as the output tables have it.
_COUNTED = union(f"SELECT date, output_id, native_token_count FROM {kind}_outputs" for kind in _HOLDERS)
# What adds to a transaction's tokens (created, melted) or takes from them (consumed, minted: below zero).
_CHANGES = """
SELECT date, transaction_id, token_id, CASE is_spent WHEN 1 THEN '-' || amount ELSE amount END AS change,
    false AS mints
FROM native_tokens
UNION ALL
SELECT date, substring(output_id, 1, 64) AS transaction_id, foundry_id AS token_id,
    '-' || newly_minted AS change, true AS mints
FROM foundry_outputs WHERE newly_minted <> '0'
UNION ALL
SELECT date, substring(output_id, 1, 64) AS transaction_id, foundry_id AS token_id,
    newly_melted AS change, false AS mints
FROM foundry_outputs WHERE newly_melted <> '0'
"""
_BY_TOKEN = f"""
SELECT date, 'transaction ' || transaction_id || ' token ' || token_id AS place,
    array_agg(change) AS changes, count_if(mints) > 0 AS mints
FROM ({_CHANGES}) GROUP BY date, transaction_id, token_id
"""


def _unbalanced(row: Row) -> Iterator[tuple[object, ...]]:
    """Find a token that a transaction creates from nothing, or mints and does not create.

    It may burn tokens unless it mints them. Amounts have up to 78 digits, more than decimals of SQL hold.
    """
    try:
        left = sum(int(change) for change in row["changes"] if change is not None)
        wrong = f"{left} more" if left > 0 else "less" if row["mints"] and left < 0 else None
    except ValueError as error:
        wrong = str(error)
    if wrong is not None:
        yield row["date"], row["place"], "what it consumes and mints, less what it melts", wrong


LAWS = (
    violations(
        "tokens_are_kept",
        "native_tokens",
        "A transaction creates no more of a native token than it consumes and mints, less what it melts.",
        _BY_TOKEN,
        check=each_row(_unbalanced),
    ),
    balance(
        "tokens_of_outputs",
        "native_tokens",
        "Created outputs hold as many native tokens as the output tables have it.",
        expected=by(_COUNTED, "output_id", "native_token_count"),
        actual=side("native_tokens", "output_id", where="is_spent = 0"),
    ),
    covered(
        "tokens_of_spent_outputs",
        "native_tokens",
        "Consumed tokens lie in consumed outputs, of the same transaction.",
        things=side("native_tokens", _SPENDING, where="is_spent = 1"),
        allowed=by(SPENT, _SPENDING),
    ),
)
