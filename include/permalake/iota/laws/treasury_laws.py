"""Laws of the treasury, which receipts spend (Chrysalis, TIP-17)."""

from __future__ import annotations

from permalake.audit.laws import balance, entries, union, violations
from permalake.iota.laws.tangle_sides import AT_MILESTONE

TREASURY_BEFORE = entries("SELECT * FROM consumed_outputs WHERE kind = 'treasury'", AT_MILESTONE, "amount")
"""A side of what receipts consumed, per milestone."""
_MIGRATED = union(
    "SELECT made.date, made.milestone_index, made.amount "
    f"FROM {kind}_outputs AS made SEMI JOIN treasury_outputs AS receipts "
    "ON substring(made.output_id, 1, 64) = receipts.output_id"
    for kind in ("legacy", "basic")
)
TREASURY_AFTER = entries(
    f"SELECT date, milestone_index, amount FROM treasury_outputs UNION ALL {_MIGRATED}",
    AT_MILESTONE,
    "amount",
)
"""A side of what receipts left and created, per milestone."""
_CHANGED = """
SELECT used.date AS date, 'treasury ' || used.output_id AS place, made.amount AS expected,
    used.amount AS found
FROM consumed_outputs AS used JOIN treasury_outputs AS made ON used.output_id = made.output_id
WHERE used.kind = 'treasury' AND made.amount <> used.amount
"""
# Only receipts without a missing milestone between them are compared.
_SKIPPED = """
WITH cuts AS (
    SELECT date, CASE WHEN start_ms <> 1 + lag(end_ms) OVER (ORDER BY date) THEN 1 ELSE 0 END AS is_cut
    FROM date_cache
),
stretches AS (SELECT date, sum(is_cut) OVER (ORDER BY date) AS stretch FROM cuts),
in_line AS (
    SELECT made.date AS date, made.milestone_index AS milestone_index,
        lag(made.output_id) OVER (PARTITION BY stretch ORDER BY made.milestone_index) AS earlier
    FROM treasury_outputs AS made JOIN stretches ON made.date = stretches.date
),
spent AS (SELECT date, milestone_index, output_id AS used FROM consumed_outputs WHERE kind = 'treasury')
SELECT in_line.date AS date, 'milestone ' || in_line.milestone_index AS place, earlier AS expected,
    used AS found
FROM in_line LEFT JOIN spent
    ON in_line.date = spent.date AND in_line.milestone_index = spent.milestone_index
WHERE earlier IS NOT NULL AND earlier IS DISTINCT FROM used
"""

LAWS = (
    balance(
        "treasury_pays_receipts",
        "treasury_outputs",
        "What a receipt takes from the treasury is what it creates and leaves.",
        expected=TREASURY_BEFORE,
        actual=TREASURY_AFTER,
    ),
    violations(
        "treasury_goes_on",
        "treasury_outputs",
        "A treasury is spent with the amount that it was created with.",
        _CHANGED,
    ),
    violations(
        "treasury_in_line",
        "treasury_outputs",
        "Each receipt spends the treasury that the one before it left.",
        _SKIPPED,
    ),
)
