"""Rows of the permanode's Stardust schema, made of lake tables; Chrysalis networks use most of it.

Each function takes the lake tables of some days, by name, and returns the rows of one store table with the
columns of its contract. Where the permanode's key makes one row of several, the last in white-flag order
stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from permalake.contracts.cql import StoreTable
from permalake.iota.contracts.permanode_views import (
    ADDRESS_COLUMNS,
    CHRONICLE,
    OUTPUT_KINDS,
    TAG_KINDS,
)
from permalake.iota.permanode import stardust_schema as store
from permalake.iota.permanode.legacy_outputs import legacy_outputs
from permalake.iota.permanode.store_columns import shaped, small, state_byte, tiny

Lake = Mapping[str, DataFrame]
Rows = Callable[[Lake], DataFrame]


def messages(lake: Lake) -> DataFrame:
    """Return ``messages``."""
    return shaped(
        lake["messages"],
        store.MESSAGES,
        est_milestone_index=F.lit(None),
        conflict_reason=tiny(F.col("conflict_reason")),
    )


def transactions(lake: Lake) -> DataFrame:
    """Return ``transactions``."""
    return shaped(
        lake["transactions"],
        store.TRANSACTIONS,
        est_milestone_index=F.lit(None),
        idx=small(F.col("idx")),
    )


def milestones(lake: Lake) -> DataFrame:
    """Return ``milestones``; the message is ``''`` where it is not known."""
    return shaped(lake["milestones"], store.MILESTONES)


def nameless(lake: Lake) -> DataFrame:
    """Return the keys that ``milestones`` with a known message had before it was known."""
    carried = lake["milestones"].where("message_id IS NOT NULL")
    return carried.select("milestone_index", F.lit("").alias("message_id"))


def tag_hints(lake: Lake) -> DataFrame:
    """Return ``tag_hints``: every tag with its kind and range."""
    hints = [
        lake[name].select("tag", F.lit(kind).alias("table_kind"), "ms_range_id")
        for name, kind in TAG_KINDS.items()
    ]
    return shaped(_union(hints).where("tag IS NOT NULL").distinct(), store.TAG_HINTS)


def addresses_hints(lake: Lake) -> DataFrame:
    """Return ``addresses_hints``: every address with its output kind, its part in it, and its range."""
    hints = [_parts_of_addresses(lake[name], kind) for name, kind in OUTPUT_KINDS.items()]
    return shaped(_union(hints).where("address IS NOT NULL").distinct(), store.ADDRESSES_HINTS)


def _parts_of_addresses(outputs: DataFrame, kind: str) -> DataFrame:
    """Return a row per address in an output, all from one scan."""
    parts = [
        F.struct(F.col(column).alias("address"), F.lit(column).alias("variant"))
        for column in ADDRESS_COLUMNS
        if column in outputs.columns
    ]
    return outputs.select("ms_range_id", F.inline(F.array(*parts))).select(
        "address", F.lit(kind).alias("output_kind"), "variant", "ms_range_id"
    )


def _outputs(table: StoreTable) -> Rows:
    def rows(lake: Lake) -> DataFrame:
        return shaped(_last(lake[table.name], lake, table), table)

    return rows


def _last(outputs: DataFrame, lake: Lake, table: StoreTable) -> DataFrame:
    """Return of several rows with one key the last in white-flag order.

    The order is that of the message whose transaction created the output.
    """
    if table.partition == ("output_id",):
        return outputs
    # Outputs of chains are few: beside all messages their own are looked up, not all messages sorted.
    placed = (
        lake["messages"]
        .select("message_id", "white_flag_index")
        .join(outputs.select("message_id"), "message_id", "left_semi")
    )
    latest_first = Window.partitionBy(*table.key).orderBy(
        F.col("white_flag_index").desc(), F.col("output_id").desc()
    )
    return (
        outputs.join(placed, "message_id", "left")
        .withColumn("place", F.row_number().over(latest_first))
        .where("place = 1")
    )


def tags(lake: Lake) -> DataFrame:
    """Return ``tags``."""
    return shaped(lake["tags"], store.TAGS, inclusion_state=state_byte(F.col("inclusion_state")))


def parents(lake: Lake) -> DataFrame:
    """Return ``parents``, with the time of the milestone."""
    timed = lake["parents"].join(times(lake), "milestone_index")
    return shaped(timed, store.PARENTS, est_milestone_index=F.lit(None))


def times(lake: Lake) -> DataFrame:
    """Return ``milestone_index`` and ``ms_timestamp`` of every milestone."""
    return lake["milestones"].select(
        "milestone_index", F.timestamp_seconds("timestamp").alias("ms_timestamp")
    )


def sync(lake: Lake) -> DataFrame:
    """Return ``sync``: every milestone of the days, complete with its raw bytes."""
    return shaped(lake["ms_analytics"], store.SYNC, synced_by=F.lit(CHRONICLE), logged_by=F.lit(CHRONICLE))


def _same(table: StoreTable) -> Rows:
    def rows(lake: Lake) -> DataFrame:
        return shaped(lake[table.name], table)

    return rows


def _union(frames: list[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, frames)


STARDUST_ROWS: dict[str, Rows] = {
    "messages": messages,
    "transactions": transactions,
    "milestones": milestones,
    "tag_hints": tag_hints,
    "addresses_hints": addresses_hints,
    **{
        table.name: _outputs(table)
        for table in (store.BASIC_OUTPUTS, store.ALIAS_OUTPUTS, store.FOUNDRY_OUTPUTS, store.NFT_OUTPUTS)
    },
    "legacy_outputs": legacy_outputs,
    "tags": tags,
    "parents": parents,
    **{
        table.name: _same(table)
        for table in (
            store.MS_ANALYTICS,
            store.DAILY_ANALYTICS,
            store.ADDRESS_ANALYTICS,
            store.DATE_CACHE,
            store.METRICS_CACHE,
        )
    },
    "sync": sync,
}
"""The function that makes each table of the Stardust schema."""
