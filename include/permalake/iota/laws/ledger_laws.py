"""Laws of the ledger: what transactions create and consume, and the supply."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from permalake.audit.laws import Frame, balance, by, per_row, side
from permalake.audit.scope import Scope
from permalake.iota.codec.chrysalis import SUPPLY
from permalake.iota.laws.tangle_sides import AT_MILESTONE, INCLUDED, created, spent
from permalake.iota.laws.treasury_laws import treasury_after, treasury_before

_OUTPUT_ID = "concat(transaction_id, lower(lpad(hex(idx % 256), 2, '0') || lpad(hex(idx div 256), 2, '0')))"
_INPUT_ID = "lower(hex(substring(data, 2, 34)))"
_TRANSACTION = "concat('transaction ', transaction_id)"


def _supply(total: str) -> Frame:
    """Return a side of the unspent total at each day's end (``total``), or of what it must be (``supply``).

    Figures that are differences since a milestone add up to zero, a whole Chrysalis ledger to the protocol's
    supply. The supply of a Stardust network is no constant of the protocol: its whole ledgers are left out.
    """

    def totals(scope: Scope) -> DataFrame:
        is_legacy = (F.col("kind") == "legacy") & (F.col("unspent_count") > 0)
        rows = (
            scope("ledger_outputs")
            .groupBy("date")
            .agg(
                F.sum("unspent_amount").alias("total"),
                (F.count("since_milestone") > 0).alias("is_cut"),
                (F.count_if(is_legacy) > 0).alias("is_chrysalis"),
            )
            .where("is_cut OR is_chrysalis")
            .selectExpr("date", "total", f"CASE WHEN is_cut THEN 0 ELSE {SUPPLY} END AS supply")
        )
        return per_row(rows, supply=total)

    return totals


LAWS = (
    balance(
        "outputs_of_transactions",
        "transactions",
        "The outputs of included transactions are the rows of the output tables.",
        expected=side("transactions", _OUTPUT_ID, where=f"{INCLUDED} AND variant = 'output'"),
        found=by(created, "output_id"),
    ),
    balance(
        "inputs_of_transactions",
        "consumed_outputs",
        "The inputs of included transactions are the consumed outputs.",
        expected=side("transactions", _INPUT_ID, where=f"{INCLUDED} AND variant = 'input'"),
        found=by(spent, "output_id"),
    ),
    balance(
        "supply_is_conserved",
        "consumed_outputs",
        "A transaction creates as much as it consumes.",
        expected=by(spent, _TRANSACTION, "amount"),
        found=by(created, _TRANSACTION, "amount"),
    ),
    balance(
        "supply_of_milestones",
        "consumed_outputs",
        "A milestone's transactions and receipt create as much as they consume.",
        expected=lambda scope: by(spent, AT_MILESTONE, "amount")(scope).union(treasury_before(scope)),
        found=lambda scope: by(created, AT_MILESTONE, "amount")(scope).union(treasury_after(scope)),
    ),
    balance(
        "supply_of_the_ledger",
        "ledger_outputs",
        "What is unspent, the treasury included, adds up to the supply; where history is cut, to no change.",
        expected=_supply("supply"),
        found=_supply("total"),
    ),
)
