"""The supply as the running ledger has it: what is unspent, the treasury included, adds up to it."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from permalake.audit.laws import Scope, per_row
from permalake.iota.codec.chrysalis import SUPPLY


def _totals(scope: Scope) -> DataFrame:
    """(date, total, supply): what is unspent at a day's end and what it has to be. Figures that are
    differences since some milestone add up to nothing, whole ledgers of Chrysalis to the protocol's supply.
    That of a Stardust network is no constant of the protocol: its whole ledgers are left out."""
    totals = (
        scope("ledger_outputs")
        .groupBy("date")
        .agg(
            F.sum("unspent_amount").alias("total"),
            (F.count("since_milestone") > 0).alias("is_cut"),
            (F.count_if((F.col("kind") == "legacy") & (F.col("unspent_count") > 0)) > 0).alias(
                "is_chrysalis"
            ),
        )
    )
    return totals.where("is_cut OR is_chrysalis").selectExpr(
        "date", "total", f"CASE WHEN is_cut THEN 0 ELSE {SUPPLY} END AS supply"
    )


def supply_known(scope: Scope) -> DataFrame:
    """What the ledger has to add up to, per day."""
    return per_row(_totals(scope), supply="supply")


def supply_found(scope: Scope) -> DataFrame:
    """What it adds up to."""
    return per_row(_totals(scope), supply="total")
