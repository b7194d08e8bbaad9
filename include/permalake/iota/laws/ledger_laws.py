"""Laws of the ledger: what transactions create and consume, and the supply."""

from __future__ import annotations

from permalake.audit.laws import balance, by, per_row, side, union
from permalake.iota.codec.chrysalis import SUPPLY
from permalake.iota.laws.tangle_sides import AT_MILESTONE, CREATED, INCLUDED, SPENT
from permalake.iota.laws.treasury_laws import TREASURY_AFTER, TREASURY_BEFORE

_OUTPUT_ID = (
    "transaction_id || lower(lpad(hex(idx % 256), 2, '0') || "
    "lpad(hex(CAST((idx - idx % 256) / 256 AS INT)), 2, '0'))"
)
_INPUT_ID = "lower(substring(hex(data), 3, 68))"
_TRANSACTION = "'transaction ' || transaction_id"
# Figures that are differences since a milestone add up to zero, a whole Chrysalis ledger to the protocol's
# supply. The supply of a Stardust network is no constant of the protocol: its whole ledgers are left out.
_TOTALS = f"""
SELECT date, total, CASE WHEN is_cut THEN 0 ELSE {SUPPLY} END AS supply
FROM (
    SELECT date, sum(unspent_amount) AS total, count(since_milestone) > 0 AS is_cut,
        count_if(kind = 'legacy' AND unspent_count > 0) > 0 AS is_chrysalis
    FROM ledger_outputs GROUP BY date
) WHERE is_cut OR is_chrysalis
"""

LAWS = (
    balance(
        "outputs_of_transactions",
        "transactions",
        "The outputs of included transactions are the rows of the output tables.",
        expected=side("transactions", _OUTPUT_ID, where=f"{INCLUDED} AND variant = 'output'"),
        actual=by(CREATED, "output_id"),
    ),
    balance(
        "inputs_of_transactions",
        "consumed_outputs",
        "The inputs of included transactions are the consumed outputs.",
        expected=side("transactions", _INPUT_ID, where=f"{INCLUDED} AND variant = 'input'"),
        actual=by(SPENT, "output_id"),
    ),
    balance(
        "supply_is_conserved",
        "consumed_outputs",
        "A transaction creates as much as it consumes.",
        expected=by(SPENT, _TRANSACTION, "amount"),
        actual=by(CREATED, _TRANSACTION, "amount"),
    ),
    balance(
        "supply_of_milestones",
        "consumed_outputs",
        "A milestone's transactions and receipt create as much as they consume.",
        expected=union([by(SPENT, AT_MILESTONE, "amount"), TREASURY_BEFORE]),
        actual=union([by(CREATED, AT_MILESTONE, "amount"), TREASURY_AFTER]),
    ),
    balance(
        "supply_of_the_ledger",
        "ledger_outputs",
        "What is unspent, the treasury included, adds up to the supply; where history is cut, to no change.",
        expected=per_row(_TOTALS, supply="supply"),
        actual=per_row(_TOTALS, supply="total"),
    ),
)
