"""Per milestone and address: ms_analytics, ms_activity, address_analytics. All from decoded rows.

``ms_activity`` follows the definitions of inx-chronicle's ``analytics`` module.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from permalake.codec.blocks import MILESTONE, NO_PAYLOAD, TAGGED_DATA, TRANSACTION
from permalake.codec.outputs import ALIAS, FOUNDRY, NFT
from permalake.transforms.decoded import Row, of_kind, range_id
from permalake.transforms.records import State

_MILESTONE_KEY = ("date", "milestone_index")
_TREASURY_TRANSACTION = 4  # measured by inx-chronicle, though no block may hold one at top level
_SINGLE_BUCKETS = 7
_BUCKETS = [*((n, n) for n in range(1, _SINGLE_BUCKETS + 1)), (8, 15), (16, 31), (32, 63), (64, None)]


def owner(output: Column) -> Column:
    """Who owns a created output: its address; an alias its state controller."""
    return F.coalesce(output["address"], output["state_controller"])


def ms_analytics(decoded: DataFrame, chunk_size: int) -> DataFrame:
    """``ms_analytics``: a row for every milestone, one without messages too."""
    is_included = (F.col("kind") == int(Row.BLOCK)) & (F.col("inclusion_state") == int(State.INCLUDED))
    return (
        decoded.where(F.col("kind") != int(Row.PROBLEM))
        .groupBy("date", "milestone_index")
        .agg(
            _count(F.col("kind") == int(Row.BLOCK)).alias("message_count"),
            _count(is_included).alias("transaction_count"),
            F.coalesce(F.sum(F.when(is_included, _total("outputs"))), F.lit(0)).alias("transferred_tokens"),
        )
        .select(
            range_id(chunk_size).alias("ms_range_id"),
            "milestone_index",
            "message_count",
            "transaction_count",
            "transferred_tokens",
            "date",
        )
    )


def address_analytics(decoded: DataFrame) -> DataFrame:
    """``address_analytics``: what addresses sent and received in included transactions, per milestone."""
    return (
        _moves(decoded)
        .groupBy(*_MILESTONE_KEY, "address")
        .agg(F.sum("sent").alias("sent_tokens"), F.sum("received").alias("recv_tokens"))
    )


def ms_activity(decoded: DataFrame) -> DataFrame:
    """``ms_activity``: blocks by payload and state, bytes, transaction sizes, active addresses, tokens that
    changed hands, and what became of aliases, foundries and NFTs."""
    tangle = (
        decoded.where(F.col("kind") != int(Row.PROBLEM))
        .groupBy("date", "milestone_index")
        .agg(*_block_activity(), *_bytes())
    )
    addresses, transactions = _address_activity(decoded), _transaction_activity(decoded)
    joined = tangle.join(addresses, [*_MILESTONE_KEY], "left").join(transactions, [*_MILESTONE_KEY], "left")
    sparse = [f for frame in (addresses, transactions) for f in frame.schema if f.name not in _MILESTONE_KEY]
    return joined.select(*tangle.columns, *(_or_nothing(f.name, f.dataType.typeName()) for f in sparse))


def _or_nothing(name: str, kind: str) -> Column:
    empty = F.array_repeat(F.lit(0), len(_BUCKETS)) if kind == "array" else F.lit(0)
    return F.coalesce(F.col(name), empty).alias(name)


def _included(decoded: DataFrame) -> DataFrame:
    included = F.col("inclusion_state") == int(State.INCLUDED)
    return of_kind(decoded, Row.BLOCK).where(included)


def _count(condition: Column) -> Column:
    return F.count_if(F.coalesce(condition, F.lit(False))).cast("int")


def _total(outputs: str) -> Column:
    return F.aggregate(outputs, F.lit(0).cast("long"), lambda total, output: total + output["amount"])


def _moves(decoded: DataFrame) -> DataFrame:
    """(date, milestone_index, message_id, address, sent, received) of every output that an included
    transaction consumed or created, where it has an owner."""

    def move(address: Column, sent: Column, received: Column) -> Column:
        return F.struct(address.alias("address"), sent.alias("sent"), received.alias("received"))

    nothing = F.lit(0).cast("long")
    received = F.transform("outputs", lambda o: move(owner(o), nothing, o["amount"]))
    sent = F.transform("consumed", lambda o: move(o["address"], o["amount"], nothing))
    return (
        _included(decoded)
        .select(*_MILESTONE_KEY, "message_id", F.explode(F.concat(received, sent)).alias("move"))
        .where("move.address is not null")
        .select(*_MILESTONE_KEY, "message_id", "move.*")
    )


def _block_activity() -> list[Column]:
    payload, state = F.col("payload_kind"), F.col("inclusion_state")
    return [
        _count(payload == NO_PAYLOAD).alias("no_payload_count"),
        _count(payload == TAGGED_DATA).alias("tagged_data_count"),
        _count(payload == TRANSACTION).alias("transaction_payload_count"),
        _count(payload == MILESTONE).alias("milestone_payload_count"),
        _count(payload == _TREASURY_TRANSACTION).alias("treasury_transaction_count"),
        _count(state == int(State.INCLUDED)).alias("confirmed_count"),
        _count(state == int(State.CONFLICTING)).alias("conflicting_count"),
        _count(state == int(State.NO_TRANSACTION)).alias("no_transaction_count"),
    ]


def _bytes() -> list[Column]:
    payload, size = F.col("payload_kind"), F.length("raw").cast("long")

    def total(condition: Column) -> Column:
        return F.coalesce(F.sum(F.when(condition, size)), F.lit(0))

    return [
        total(payload == TAGGED_DATA).alias("tagged_data_bytes"),
        total(payload == TRANSACTION).alias("transaction_bytes"),
        total(payload == MILESTONE).alias("milestone_bytes"),
        total(payload == _TREASURY_TRANSACTION).alias("treasury_transaction_bytes"),
        total(F.col("kind") == int(Row.BLOCK)).alias("message_bytes"),
    ]


def _address_activity(decoded: DataFrame) -> DataFrame:
    """Distinct owners, and tokens that changed hands: in each transaction, what an address received beyond
    what it sent."""
    gain = F.greatest(F.sum("received") - F.sum("sent"), F.lit(0))
    return (
        _moves(decoded)
        .groupBy(*_MILESTONE_KEY, "message_id", "address")
        .agg(gain.alias("gain"))
        .groupBy(*_MILESTONE_KEY)
        .agg(
            F.count_distinct("address").cast("int").alias("active_addresses"),
            F.sum("gain").alias("moved_tokens"),
        )
    )


def _transaction_activity(decoded: DataFrame) -> DataFrame:
    per_transaction = _included(decoded).select(
        *_MILESTONE_KEY,
        F.size("inputs").alias("inputs"),
        F.size("outputs").alias("outputs"),
        *_chain_activity("nft", NFT),
        *_alias_activity(),
        *_chain_activity("foundry", FOUNDRY),
    )
    counts = [name for name in per_transaction.columns if name.endswith("_count")]
    return per_transaction.groupBy(*_MILESTONE_KEY).agg(
        F.array(*(_in_bucket("inputs", *bucket) for bucket in _BUCKETS)).alias("input_buckets"),
        F.array(*(_in_bucket("outputs", *bucket) for bucket in _BUCKETS)).alias("output_buckets"),
        *(F.sum(name).cast("int").alias(name) for name in counts),
    )


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
