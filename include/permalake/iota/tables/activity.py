"""Activity per milestone: ``ms_analytics``, ``ms_activity``.

``ms_activity`` follows the definitions of inx-chronicle's ``analytics`` module (docs/peers.md).
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from permalake.iota.codec.blocks import MILESTONE, NO_PAYLOAD, TAGGED_DATA, TRANSACTION
from permalake.iota.codec.outputs import ALIAS, FOUNDRY, NFT
from permalake.iota.cone.decoded import Row, range_id
from permalake.iota.cone.source_records import InclusionState

_MILESTONE_KEY = ("date", "milestone_index")
_TREASURY_TRANSACTION = 4  # measured by inx-chronicle, though no block may hold one at top level
_SINGLE_BUCKETS = 7
_CHANGES = ("_created_count", "_transferred_count", "_changed_count", "_destroyed_count")
BUCKETS = [*((n, n) for n in range(1, _SINGLE_BUCKETS + 1)), (8, 15), (16, 31), (32, 63), (64, None)]


def owner(output: Column) -> Column:
    """Return the owner of a created output: its address, an alias's state controller."""
    return F.coalesce(output["address"], output["state_controller"])


def per_milestone(decoded: DataFrame) -> DataFrame:
    """Return the figures of ``ms_analytics`` and ``ms_activity`` that follow from messages and transactions.

    One pass. Every milestone has a row, also one without messages.
    """
    is_block = F.col("kind") == int(Row.BLOCK)
    is_included = is_block & (F.col("inclusion_state") == int(InclusionState.INCLUDED))
    own = decoded.where(F.col("kind") != int(Row.PROBLEM)).select(
        *_MILESTONE_KEY,
        "timestamp",
        is_block.alias("is_block"),
        F.when(is_block, F.col("payload_kind")).alias("payload"),
        F.when(is_block, F.col("inclusion_state")).alias("state"),
        F.when(is_block, F.length("raw").cast("long")).alias("size"),
        *(F.when(is_included, F.col(name)).alias(name) for name in ("inputs", "outputs", "consumed")),
    )
    measured = own.select(
        *(*_MILESTONE_KEY, "timestamp", "is_block", "payload", "state", "size"),
        F.size("inputs").alias("inputs"),
        F.size("outputs").alias("outputs_count"),
        total_amount("outputs").alias("booked_tokens"),
        _gains().alias("moved_tokens"),
        *_chain_activity("nft", NFT),
        *_alias_activity(),
        *_chain_activity("foundry", FOUNDRY),
    )
    chains = [name for name in measured.columns if name.endswith(_CHANGES)]
    return measured.groupBy(*_MILESTONE_KEY).agg(
        F.max("timestamp").alias("timestamp"),
        _count(F.col("is_block")).alias("message_count"),
        *_block_activity(),
        *_bytes(),
        *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in ("booked_tokens", "moved_tokens")),
        F.array(*(_in_bucket("inputs", *bucket) for bucket in BUCKETS)).alias("input_buckets"),
        F.array(*(_in_bucket("outputs_count", *bucket) for bucket in BUCKETS)).alias("output_buckets"),
        *(F.coalesce(F.sum(name), F.lit(0)).cast("int").alias(name) for name in chains),
    )


def ms_analytics(per_milestone: DataFrame, chunk_size: int) -> DataFrame:
    """Return ``ms_analytics``."""
    return per_milestone.select(
        range_id(chunk_size).alias("ms_range_id"),
        "milestone_index",
        "message_count",
        F.col("confirmed_count").alias("transaction_count"),
        F.col("booked_tokens").alias("transferred_tokens"),
        "date",
    )


def ms_activity(per_milestone: DataFrame, address_analytics: DataFrame) -> DataFrame:
    """Return ``ms_activity``.

    It has blocks by payload and state, bytes, transaction sizes, active addresses, tokens that changed hands,
    and changes of aliases, foundries and NFTs.
    """
    active = address_analytics.groupBy(*_MILESTONE_KEY).agg(F.count("*").cast("int").alias("active"))
    return per_milestone.join(active, [*_MILESTONE_KEY], "left").select(
        "*", F.coalesce("active", F.lit(0)).alias("active_addresses")
    )


def _count(condition: Column) -> Column:
    return F.count_if(F.coalesce(condition, F.lit(False))).cast("int")


def total_amount(outputs: str) -> Column:
    """Return the sum of the amounts of a list of outputs."""
    return F.aggregate(outputs, F.lit(0).cast("long"), lambda total, output: total + output["amount"])


def _receiver(output: Column) -> Column:
    """Return who holds a created output at its milestone's time: its return address if it has expired."""
    expired = (output["expiration_time"] > 0) & (output["expiration_time"] <= F.col("timestamp"))
    return F.when(expired, output["expiration_return_address"]).otherwise(owner(output))


def _gains() -> Column:
    """Return the tokens of a transaction that changed hands.

    That is what each address received beyond what it sent (inx-chronicle's ``transferred_amount``). Moves are
    sorted by address, so one pass over them is enough.
    """

    def move(address: Column, amount: Column) -> Column:
        return F.struct(address.alias("address"), amount.alias("amount"))

    def step(so_far: Column, one: Column) -> Column:
        goes_on = so_far["address"].eqNullSafe(one["address"])
        settled = so_far["total"] + F.greatest(so_far["gain"], F.lit(0).cast("long"))
        return F.struct(
            F.when(goes_on, so_far["total"]).otherwise(settled).alias("total"),
            one["address"].alias("address"),
            F.when(goes_on, so_far["gain"] + one["amount"]).otherwise(one["amount"]).alias("gain"),
        )

    nothing = F.lit(0).cast("long")
    received = F.transform("outputs", lambda o: move(_receiver(o), o["amount"]))
    sent = F.transform("consumed", lambda o: move(o["address"], -o["amount"]))
    return F.aggregate(
        F.sort_array(F.concat(received, sent)),
        F.struct(nothing.alias("total"), F.lit(None).cast("string").alias("address"), nothing.alias("gain")),
        step,
        lambda walked: walked["total"] + F.greatest(walked["gain"], nothing),
    )


def _block_activity() -> list[Column]:
    payload, state = F.col("payload"), F.col("state")
    return [
        _count(payload == NO_PAYLOAD).alias("no_payload_count"),
        _count(payload == TAGGED_DATA).alias("tagged_data_count"),
        _count(payload == TRANSACTION).alias("transaction_payload_count"),
        _count(payload == MILESTONE).alias("milestone_payload_count"),
        _count(payload == _TREASURY_TRANSACTION).alias("treasury_transaction_count"),
        _count(state == int(InclusionState.INCLUDED)).alias("confirmed_count"),
        _count(state == int(InclusionState.CONFLICTING)).alias("conflicting_count"),
        _count(state == int(InclusionState.NO_TRANSACTION)).alias("no_transaction_count"),
    ]


def _bytes() -> list[Column]:
    payload, size = F.col("payload"), F.col("size")

    def total(condition: Column) -> Column:
        return F.coalesce(F.sum(F.when(condition, size)), F.lit(0))

    return [
        total(payload == TAGGED_DATA).alias("tagged_data_bytes"),
        total(payload == TRANSACTION).alias("transaction_bytes"),
        total(payload == MILESTONE).alias("milestone_bytes"),
        total(payload == _TREASURY_TRANSACTION).alias("treasury_transaction_bytes"),
        total(F.col("is_block")).alias("message_bytes"),
    ]


def _in_bucket(size: str, low: int, high: int | None) -> Column:
    within = F.col(size) >= low
    return _count(within if high is None else within & (F.col(size) <= high))


def _chains(outputs: str, kind: int) -> Column:
    of_this_kind = F.filter(outputs, lambda output: output["kind"] == kind)
    return F.array_distinct(F.transform(of_this_kind, lambda output: output["chain_id"]))


def _chain_activity(name: str, kind: int) -> list[Column]:
    created, spent = _chains("outputs", kind), _chains("consumed", kind)
    return [
        F.size(F.array_except(created, spent)).alias(f"{name}_created_count"),
        F.size(F.array_intersect(created, spent)).alias(f"{name}_transferred_count"),
        F.size(F.array_except(spent, created)).alias(f"{name}_destroyed_count"),
    ]


def _alias_activity() -> list[Column]:
    created, _, destroyed = _chain_activity("alias", ALIAS)

    def changed(what: str) -> Column:
        def differs(output: Column) -> Column:
            same_alias = F.filter("consumed", lambda spent: spent["chain_id"] == output["chain_id"])
            return F.exists(same_alias, lambda spent: spent[what] != output[what])

        aliases = F.filter("outputs", lambda output: output["kind"] == ALIAS)
        return F.size(F.filter(aliases, differs))

    return [
        created,
        changed("governor").alias("alias_governor_changed_count"),
        changed("state_index").alias("alias_state_changed_count"),
        destroyed,
    ]
