"""Laws of the treasury, which receipts spend (Chrysalis, TIP-17)."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from permalake.audit.laws import balance, entries, union, violations
from permalake.audit.scope import Scope
from permalake.iota.laws.tangle_sides import AT_MILESTONE


def treasury_before(scope: Scope) -> DataFrame:
    """Return a side of what receipts consumed, per milestone."""
    return entries(scope("consumed_outputs").where("kind = 'treasury'"), AT_MILESTONE, "amount")


def treasury_after(scope: Scope) -> DataFrame:
    """Return a side of what receipts left and created, per milestone."""
    left = scope("treasury_outputs").selectExpr("date", "milestone_index", "amount", "output_id AS id")
    migrated = union(
        scope(f"{kind}_outputs").selectExpr(
            *("date", "milestone_index", "amount", "substring(output_id, 1, 64) AS id")
        )
        for kind in ("legacy", "basic")
    ).join(F.broadcast(left.select("id")), "id", "left_semi")
    return entries(left.unionByName(migrated), AT_MILESTONE, "amount")


def _changed(scope: Scope) -> DataFrame:
    made = scope("treasury_outputs").selectExpr("output_id", "amount AS expected")
    used = scope("consumed_outputs").where("kind = 'treasury'")
    return (
        used.join(made, "output_id")
        .where("expected <> amount")
        .selectExpr("date", "concat('treasury ', output_id) AS place", "expected", "amount AS found")
    )


def _skipped(scope: Scope) -> DataFrame:
    """Return receipts that spend another treasury than the one that the receipt before them left.

    Only receipts without a missing milestone between them are compared.
    """
    left = scope("treasury_outputs").select("date", "milestone_index", "output_id")
    used = (
        scope("consumed_outputs")
        .where("kind = 'treasury'")
        .selectExpr("date", "milestone_index", "output_id AS used")
    )
    by_date = Window.orderBy("date")
    ended = F.lag("end_ms").over(by_date)
    cuts = scope("date_cache").select("date", (F.col("start_ms") != ended + 1).cast("int").alias("is_cut"))
    unbroken = cuts.select("date", F.coalesce(F.sum("is_cut").over(by_date), F.lit(0)).alias("unbroken"))
    before = F.lag("output_id").over(Window.partitionBy("unbroken").orderBy("milestone_index"))
    in_line = left.join(F.broadcast(unbroken), "date").select(
        "date", "milestone_index", before.alias("before")
    )
    return (
        in_line.join(used, ["date", "milestone_index"], "left")
        .where("before IS NOT NULL AND NOT before <=> used")
        .selectExpr("date", f"{AT_MILESTONE} AS place", "before AS expected", "used AS found")
    )


LAWS = (
    balance(
        "treasury_pays_receipts",
        "treasury_outputs",
        "What a receipt takes from the treasury is what it creates and leaves.",
        expected=treasury_before,
        found=treasury_after,
    ),
    violations(
        "treasury_goes_on",
        "treasury_outputs",
        "A treasury is spent with the amount that it was created with.",
        _changed,
    ),
    violations(
        "treasury_in_line",
        "treasury_outputs",
        "Each receipt spends the treasury that the one before it left.",
        _skipped,
    ),
)
