"""What moves, and what failed to: native tokens, ledger updates, conflicts by address."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from permalake.iota.cone.decoded import Row, hexed, milestone_time, of_kind
from permalake.iota.cone.source_records import InclusionState
from permalake.iota.tables.activity import owner
from permalake.iota.tables.output_tables import kind_name, output_id


def native_tokens(decoded: DataFrame) -> DataFrame:
    """Return ``native_tokens``: in outputs created and consumed by included transactions."""
    return (
        of_kind(decoded, Row.BLOCK)
        .where("native_tokens is not null")
        .select(
            F.explode("native_tokens").alias("held"),
            hexed("transaction_id").alias("transaction_id"),
            "milestone_index",
            milestone_time().alias("ms_timestamp"),
            "date",
        )
        .select(
            hexed("held.output_id").alias("output_id"),
            F.col("held.is_spent").cast("int").alias("is_spent"),
            *("held.token_id", "held.amount", "held.address"),
            *("transaction_id", "milestone_index", "ms_timestamp", "date"),
        )
    )


def ledger_updates(decoded: DataFrame) -> DataFrame:
    """Return ``ledger_updates``: what transactions and receipts change, by address."""
    return _of_transactions(decoded).unionByName(_of_receipts(decoded))


def conflicting_transactions(decoded: DataFrame) -> DataFrame:
    """Return ``conflicting_transactions``: by signers, and by owners of outputs that were not created."""

    def part(address: Column, is_signer: int, amount: Column) -> Column:
        return F.struct(
            address.alias("address"),
            F.lit(is_signer).alias("is_signer"),
            amount.cast("long").alias("amount"),
        )

    received = F.transform("outputs", lambda output: part(owner(output), 0, output["amount"]))
    signed = F.transform(
        F.coalesce("signers", F.array().cast("array<string>")), lambda signer: part(signer, 1, F.lit(0))
    )
    key = ("date", "milestone_index", "timestamp", "message_id", "transaction_id", "conflict_reason")
    return (
        of_kind(decoded, Row.BLOCK)
        .where(F.col("inclusion_state") == int(InclusionState.CONFLICTING))
        .select(*key, F.explode(F.concat(received, signed)).alias("part"))
        .where("part.address is not null")
        .groupBy(*key, F.col("part.address").alias("address"))
        .agg(F.max("part.is_signer").alias("is_signer"), F.sum("part.amount").alias("amount"))
        .select(
            *("address", "milestone_index", milestone_time().alias("ms_timestamp")),
            *(hexed(name).alias(name) for name in ("message_id", "transaction_id")),
            *("conflict_reason", "is_signer", "amount", "date"),
        )
    )


def _of_transactions(decoded: DataFrame) -> DataFrame:
    nothing, here = F.lit(None), F.lit(1)

    def created(output: Column, idx: Column) -> Column:
        return _change(owner(output), nothing, idx, output, is_spent=0)

    def consumed(output: Column) -> Column:
        return _change(output["address"], output["output_id"], here, output, is_spent=1)

    changes = F.concat(F.transform("outputs", created), F.transform("consumed", consumed))
    parties = F.array_distinct(F.array_compact(F.transform("changes", lambda change: change["address"])))
    return (
        of_kind(decoded, Row.BLOCK)
        .where(F.col("inclusion_state") == int(InclusionState.INCLUDED))
        .select("date", "milestone_index", "timestamp", "transaction_id", changes.alias("changes"))
        .select("*", (F.size(parties) - 1).alias("counterparties"))
        .select("*", F.explode("changes").alias("change"))
        .where("change.address is not null")
        .select(
            "change.address",
            "milestone_index",
            milestone_time().alias("ms_timestamp"),
            F.when(F.col("change.is_spent") == 1, hexed("change.output_id"))
            .otherwise(output_id("transaction_id", F.col("change.idx")))
            .alias("output_id"),
            "change.is_spent",
            kind_name(F.col("change.kind")).alias("kind"),
            "change.amount",
            hexed("transaction_id").alias("transaction_id"),
            "counterparties",
            "date",
        )
    )


def _change(address: Column, output_id: Column, idx: Column, output: Column, *, is_spent: int) -> Column:
    return F.struct(
        address.alias("address"),
        output_id.cast("binary").alias("output_id"),
        idx.cast("int").alias("idx"),
        F.lit(is_spent).alias("is_spent"),
        output["kind"].alias("kind"),
        output["amount"].alias("amount"),
    )


def _of_receipts(decoded: DataFrame) -> DataFrame:
    return (
        of_kind(decoded, Row.MILESTONE)
        .where("receipt is not null")
        .select(
            F.posexplode("receipt.funds").alias("idx", "fund"),
            *("date", "milestone_index", "timestamp", "milestone_id"),
        )
        .select(
            "fund.address",
            "milestone_index",
            milestone_time().alias("ms_timestamp"),
            output_id("milestone_id", F.col("idx")).alias("output_id"),
            F.lit(0).alias("is_spent"),
            kind_name(F.col("fund.kind")).alias("kind"),
            "fund.amount",
            F.lit(None).cast("string").alias("transaction_id"),
            F.lit(0).alias("counterparties"),
            "date",
        )
    )
