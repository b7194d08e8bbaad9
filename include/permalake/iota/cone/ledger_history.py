"""The ledger of earlier days, as the published tables tell it: outputs created and consumed before a day."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from permalake.iota.codec.outputs import Protocol

Tables = Callable[[str], DataFrame]
_KINDS: dict[Protocol, tuple[str, ...]] = {
    "chrysalis": ("legacy",),
    "stardust": ("basic", "alias", "foundry", "nft"),
}


def created_before(table: Tables, protocol: Protocol, day: date) -> DataFrame:
    """Return every output that a published day before ``day`` created.

    Columns: output_id binary, data binary, created int. ``table`` gives a network's published table by name.
    """
    frames = (
        table(f"{kind}_outputs")
        .where(F.col("date") < F.lit(day))
        .select(F.unhex("output_id").alias("output_id"), "data", F.col("milestone_index").alias("created"))
        for kind in _KINDS[protocol]
    )
    return reduce(DataFrame.unionByName, frames)


def history_before(table: Tables, protocol: Protocol, day: date) -> DataFrame:
    """Return what published days before ``day`` created and what they spent, a row each.

    Columns as in :data:`~permalake.iota.cone.conflict_reasons.HISTORY`; not joined: who wants few of them
    only scans.
    """
    spent = (
        table("consumed_outputs")
        .where((F.col("date") < F.lit(day)) & F.col("transaction_id").isNotNull())
        .select(F.unhex("output_id").alias("output_id"), F.col("milestone_index").alias("spent"))
    )
    return created_before(table, protocol, day).unionByName(spent, allowMissingColumns=True)


def treasuries_before(table: Tables, day: date) -> dict[bytes, int]:
    """Return what every receipt of a published day before ``day`` left in the treasury, by milestone id."""
    rows = table("treasury_outputs").where(F.col("date") < F.lit(day)).select("output_id", "amount")
    return {bytes.fromhex(row["output_id"]): row["amount"] for row in rows.collect()}
