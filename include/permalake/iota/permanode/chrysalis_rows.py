"""Rows of the Chrysalis permanode's schema, made of lake tables.

The schema leaves two blobs open: ``inclusion_state`` is one byte with the lake's number, ``metadata`` the
JSON body of a node's route ``messages/{id}/metadata``.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from permalake.contracts.cql import StoreTable
from permalake.iota.contracts.permanode_views import CHRONICLE, SYNC_KEY
from permalake.iota.permanode import chrysalis_schema as store
from permalake.iota.permanode.stardust_rows import times
from permalake.iota.permanode.store_columns import shaped, small, state_byte

Lake = Mapping[str, DataFrame]

ED25519 = 0
"""The one kind of address on Chrysalis."""
_STATES = ("conflicting", "included", "noTransaction")

LOOKUPS: dict[str, tuple[StoreTable, str, tuple[str, ...]]] = {
    "address": (
        store.ADDRESSES,
        "address",
        ("milestone_index", "output_type", "transaction_id", "output_index"),
    ),
    "index": (store.INDEXES, "indexation", ("milestone_index", "message_id")),
    "parent": (store.PARENTS, "parent_id", ("milestone_index", "message_id")),
}
"""Variant in ``hints`` -> table, its key column, and the order in which its rows take their places."""


def messages(lake: Lake) -> DataFrame:
    """Return ``messages`` with their metadata."""
    parents = (
        lake["parents"].groupBy("message_id").agg(F.sort_array(F.collect_set("parent_id")).alias("parents"))
    )
    with_parents = lake["messages"].join(parents, "message_id", "left")
    return shaped(
        with_parents,
        store.MESSAGES,
        message_id=F.unhex("message_id"),
        metadata=F.encode(F.to_json(_metadata()), "UTF-8"),
    )


def _metadata() -> Column:
    """As a node tells it; fields without a value are left out."""
    state = F.element_at(F.array(*(F.lit(word) for word in _STATES)), F.col("inclusion_state") + 1)
    conflict = F.when(F.col("conflict_reason") > 0, F.col("conflict_reason"))
    return F.struct(
        F.col("message_id").alias("messageId"),
        F.coalesce("parents", F.array().cast("array<string>")).alias("parentMessageIds"),
        F.lit(True).alias("isSolid"),
        F.col("milestone_index").alias("referencedByMilestoneIndex"),
        state.alias("ledgerInclusionState"),
        conflict.alias("conflictReason"),
    )


def transactions(lake: Lake) -> DataFrame:
    """Return ``transactions``."""
    return shaped(
        lake["transactions"],
        store.TRANSACTIONS,
        idx=small(F.col("idx")),
        inclusion_state=state_byte(F.col("inclusion_state")),
    )


def milestones(lake: Lake) -> DataFrame:
    """Return ``milestones``."""
    return shaped(lake["milestones"], store.MILESTONES)


def sync(lake: Lake) -> DataFrame:
    """Return ``sync``."""
    return shaped(
        lake["ms_analytics"],
        store.SYNC,
        key=F.lit(SYNC_KEY),
        synced_by=F.lit(CHRONICLE),
        logged_by=F.lit(CHRONICLE),
    )


def lookups(lake: Lake) -> dict[str, DataFrame]:
    """Return rows of the look-up tables by variant, without a partition.

    Columns: ``variant``, ``hint``, ``date``, and those of the table without its key and partition.
    """
    output = F.col("output_id")
    low, high = (F.conv(F.substring(output, at, 2), 16, 10).cast("int") for at in (65, 67))
    addresses = lake["legacy_outputs"].select(
        *_placed_by("address", "address"),
        "date",
        "milestone_index",
        "output_type",
        F.substring(output, 1, 64).alias("transaction_id"),
        (low + high * 256).alias("output_index"),
        "amount",
        "inclusion_state",
        F.col("ms_timestamp").alias("updated_at"),
    )
    indexes = lake["tags"].select(
        *_placed_by("index", "tag"),
        "date",
        "milestone_index",
        "message_id",
        "inclusion_state",
        F.col("ms_timestamp").alias("updated_at"),
    )
    parents = (
        lake["parents"]
        .join(times(lake), "milestone_index")
        .select(
            *_placed_by("parent", "parent_id"),
            "date",
            "milestone_index",
            "message_id",
            "inclusion_state",
            F.col("ms_timestamp").alias("updated_at"),
        )
    )
    return {"address": addresses, "index": indexes, "parent": parents}


def _placed_by(variant: str, column: str) -> tuple[Column, Column]:
    return F.lit(variant).alias("variant"), F.col(column).alias("hint")


def placed(variant: str, rows: DataFrame) -> DataFrame:
    """Return rows of a look-up table.

    ``rows`` come from :func:`permalake.iota.permanode.partitions.with_partition`.
    """
    table, key, _ = LOOKUPS[variant]
    variant_columns = {key: F.col("hint"), "inclusion_state": state_byte(F.col("inclusion_state"))}
    if variant == "address":
        variant_columns |= {"idx": small(F.col("output_index")), "address_type": F.lit(ED25519)}
    return shaped(rows, table, **variant_columns)


def hints(placed: DataFrame) -> DataFrame:
    """Return ``hints`` of all partitions in ``placed``, each with its newest milestone.

    ``placed`` has the columns variant, hint, partition_id and milestone_index.
    """
    newest = placed.groupBy("variant", "hint", "partition_id").agg(
        F.max("milestone_index").alias("milestone_index")
    )
    return shaped(newest, store.HINTS)
