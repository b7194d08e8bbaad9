"""Tables of the ledger: outputs created, one table per kind, and outputs consumed."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from permalake.iota.codec.outputs import ALIAS, BASIC, DUST_ALLOWANCE, FOUNDRY, NFT, SINGLE, TREASURY
from permalake.iota.cone.decoded import Row, hexed, milestone_time, of_kind, range_id
from permalake.iota.cone.source_records import InclusionState

LEGACY = (SINGLE, DUST_ALLOWANCE)
_NAMES = {
    SINGLE: "legacy",
    DUST_ALLOWANCE: "legacy",
    TREASURY: "treasury",
    BASIC: "basic",
    ALIAS: "alias",
    FOUNDRY: "foundry",
    NFT: "nft",
}
_METADATA = ("metadata", "immutable_metadata", "state_metadata")
_SHARED = (
    "output_id",
    "ms_range_id",
    "milestone_index",
    "ms_timestamp",
    "inclusion_state",
    "amount",
)


def basic_outputs(decoded: DataFrame, chunk_size: int) -> DataFrame:
    """Return ``basic_outputs``."""
    created = _created(decoded, chunk_size, BASIC).unionByName(_migrated(decoded, chunk_size, BASIC), True)
    return created.select(
        *_SHARED,
        "message_id",
        "address",
        "sender",
        "tag",
        *_conditions("storage_return_address"),
        "data",
        "date",
    )


def alias_outputs(decoded: DataFrame, chunk_size: int) -> DataFrame:
    """Return ``alias_outputs``: every state of every alias."""
    return _created(decoded, chunk_size, ALIAS).select(
        *_SHARED,
        "message_id",
        F.col("chain_id").alias("alias_id"),
        "sender",
        "issuer",
        "state_controller",
        "governor",
        "state_index",
        "foundry_counter",
        "native_token_count",
        *("state_metadata", "metadata", "immutable_metadata"),
        "data",
        "date",
    )


def foundry_outputs(decoded: DataFrame, chunk_size: int) -> DataFrame:
    """Return ``foundry_outputs``."""
    created = _created(decoded, chunk_size, FOUNDRY)
    return created.select(
        *_SHARED,
        "message_id",
        F.col("chain_id").alias("foundry_id"),
        "address",
        "serial_number",
        "native_token_count",
        F.col("scheme.minted").alias("minted_tokens"),
        F.col("scheme.melted").alias("melted_tokens"),
        F.col("scheme.maximum").alias("maximum_supply"),
        *("scheme.newly_minted", "scheme.newly_melted", "metadata", "immutable_metadata"),
        *(F.col(f"token.{name}").alias(f"token_{name}") for name in ("name", "symbol", "decimals")),
        "data",
        "date",
    )


def nft_outputs(decoded: DataFrame, chunk_size: int) -> DataFrame:
    """Return ``nft_outputs``."""
    return _created(decoded, chunk_size, NFT).select(
        *_SHARED,
        "message_id",
        F.col("chain_id").alias("nft_id"),
        "address",
        "sender",
        "issuer",
        "tag",
        *_conditions("dust_return_address"),
        *("metadata", "immutable_metadata"),
        F.col("nft.collection").alias("collection_name"),
        F.col("nft.name").alias("nft_name"),
        F.col("nft.uri").alias("nft_uri"),
        "data",
        "date",
    )


def legacy_outputs(decoded: DataFrame, chunk_size: int) -> DataFrame:
    """Return ``legacy_outputs``: of transactions and of receipts."""
    created = _created(decoded, chunk_size, *LEGACY)
    every = created.unionByName(_migrated(decoded, chunk_size, *LEGACY), True)
    return every.select(
        *_SHARED, F.col("kind").cast("int").alias("output_type"), "message_id", "address", "data", "date"
    )


def treasury_outputs(decoded: DataFrame, chunk_size: int) -> DataFrame:
    """Return ``treasury_outputs``.

    The output id is the milestone's; data is type 2 and the amount (TIP-34).
    """
    amount = F.col("receipt.treasury_output")
    return (
        of_kind(decoded, Row.MILESTONE)
        .where("receipt is not null")
        .select(
            hexed("milestone_id").alias("output_id"),
            *_milestone(chunk_size),
            F.lit(int(InclusionState.INCLUDED)).alias("inclusion_state"),
            amount.alias("amount"),
            F.unhex(F.concat(F.lit("02"), _u64_hex(amount))).alias("data"),
            "date",
        )
    )


def receipts(decoded: DataFrame) -> DataFrame:
    """Return ``receipts``: a row for each of the funds that a receipt migrated."""
    return (
        of_kind(decoded, Row.MILESTONE)
        .where("receipt is not null")
        .select(
            "milestone_index",
            milestone_time().alias("ms_timestamp"),
            F.posexplode("receipt.funds").alias("idx", "fund"),
            "milestone_id",
            F.col("receipt.migrated_at").alias("migrated_at"),
            F.col("receipt.final").cast("int").alias("final"),
            "date",
        )
        .select(
            "milestone_index",
            "ms_timestamp",
            "idx",
            output_id("milestone_id", F.col("idx")).alias("output_id"),
            "migrated_at",
            "final",
            hexed("fund.tail_transaction_hash").alias("tail_transaction_hash"),
            "fund.address",
            "fund.amount",
            "date",
        )
    )


def consumed_outputs(decoded: DataFrame) -> DataFrame:
    """Return ``consumed_outputs``: by included transactions, and the treasury by receipts."""
    return _spent(decoded).unionByName(_treasury_spent(decoded))


def kinds_created(decoded: DataFrame) -> frozenset[int]:
    """Return the wire kinds of the outputs that included transactions and receipts created.

    It scans one column, so that tables of kinds that a network does not use cost nothing.
    """
    created = (
        of_kind(decoded, Row.BLOCK)
        .where(F.col("inclusion_state") == int(InclusionState.INCLUDED))
        .select(F.explode("outputs.kind").alias("kind"))
    )
    migrated = (
        of_kind(decoded, Row.MILESTONE)
        .where("receipt is not null")
        .select(
            F.explode(F.concat("receipt.funds.kind", F.array(F.lit(TREASURY).cast("byte")))).alias("kind")
        )
    )
    return frozenset(row["kind"] for row in created.union(migrated).distinct().collect())


def _created(decoded: DataFrame, chunk_size: int, *kinds: int) -> DataFrame:
    """Return outputs of included transactions, of some kinds, with their bytes cut out of the message."""

    def is_wanted(output: Column) -> Column:
        return output["kind"].isin(list(kinds))

    def placed(output: Column, idx: Column) -> Column:
        return F.struct(output.alias("output"), idx.alias("idx"))

    def cut(slice: Column) -> Column:
        return F.substring("raw", slice["start"] + 1, slice["length"])

    def with_data(created: Column) -> Column:
        output = created["output"]
        metadata = (cut(output[f"{name}_at"]).alias(name) for name in _METADATA)
        return F.struct(
            output.alias("output"), created["idx"].alias("idx"), cut(output).alias("data"), *metadata
        )

    of_these = F.filter(F.transform("outputs", placed), lambda created: is_wanted(created["output"]))
    wanted = F.transform(of_these, with_data)
    return (
        of_kind(decoded, Row.BLOCK)
        .where((F.col("inclusion_state") == int(InclusionState.INCLUDED)) & F.exists("outputs", is_wanted))
        .select(
            F.explode(wanted).alias("created"),
            "transaction_id",
            hexed("message_id").alias("message_id"),
            *_milestone(chunk_size),
            "inclusion_state",
            "date",
        )
        .select(
            output_id("transaction_id", F.col("created.idx")).alias("output_id"),
            *("ms_range_id", "milestone_index", "ms_timestamp", "inclusion_state", "message_id", "date"),
            "created.data",
            *(f"created.{name}" for name in _METADATA),
            "created.output.*",
        )
    )


def _migrated(decoded: DataFrame, chunk_size: int, *kinds: int) -> DataFrame:
    """Return outputs that receipts create; their id is milestone id || u16 LE index."""
    return (
        of_kind(decoded, Row.MILESTONE)
        .where("receipt is not null")
        .select(
            F.posexplode("receipt.funds").alias("idx", "fund"),
            "milestone_id",
            *_milestone(chunk_size),
            "date",
        )
        .where(F.col("fund.kind").isin(list(kinds)))
        .select(
            output_id("milestone_id", F.col("idx")).alias("output_id"),
            *("ms_range_id", "milestone_index", "ms_timestamp", "date"),
            F.lit(int(InclusionState.INCLUDED)).alias("inclusion_state"),
            "fund.*",
        )
    )


def _spent(decoded: DataFrame) -> DataFrame:
    return (
        of_kind(decoded, Row.BLOCK)
        .select(
            F.explode("consumed").alias("spent"),
            hexed("transaction_id").alias("transaction_id"),
            hexed("message_id").alias("message_id"),
            "milestone_index",
            milestone_time().alias("ms_timestamp"),
            "date",
        )
        .select(
            hexed("spent.output_id").alias("output_id"),
            kind_name(F.col("spent.kind")).alias("kind"),
            "spent.address",
            "spent.amount",
            "transaction_id",
            "message_id",
            "milestone_index",
            "ms_timestamp",
            "date",
        )
    )


def _treasury_spent(decoded: DataFrame) -> DataFrame:
    """Return the treasury outputs that receipts consume: what the receipt left and its deposits."""
    deposits = F.aggregate("receipt.funds", F.lit(0).cast("long"), lambda total, fund: total + fund["amount"])
    nothing = F.lit(None).cast("string")
    return (
        of_kind(decoded, Row.MILESTONE)
        .where("receipt is not null")
        .select(
            hexed("receipt.treasury_input").alias("output_id"),
            F.lit("treasury").alias("kind"),
            nothing.alias("address"),
            (F.col("receipt.treasury_output") + deposits).alias("amount"),
            nothing.alias("transaction_id"),
            nothing.alias("message_id"),
            "milestone_index",
            milestone_time().alias("ms_timestamp"),
            "date",
        )
    )


def _conditions(return_address: str) -> tuple[Column, ...]:
    """Return the columns of unlock conditions; the codec's 0 means that the output has none."""
    return (
        F.nullif("timelock_time", F.lit(0)).alias("timelock_time"),
        F.nullif("expiration_time", F.lit(0)).alias("expiration_time"),
        F.col("expiration_return_address"),
        F.col("return_address").alias(return_address),
        F.nullif("storage_return_amount", F.lit(0)).alias("storage_return_amount"),
        # A receipt's output holds none.
        F.coalesce("native_token_count", F.lit(0)).alias("native_token_count"),
    )


def _milestone(chunk_size: int) -> tuple[Column, ...]:
    return (
        range_id(chunk_size).alias("ms_range_id"),
        F.col("milestone_index"),
        milestone_time().alias("ms_timestamp"),
    )


def kind_name(kind: Column) -> Column:
    """Return the tables' name of a wire kind."""
    return F.coalesce(*(F.when(kind == code, name) for code, name in _NAMES.items()))


def output_id(transaction_id: str, idx: Column) -> Column:
    """Return transaction id || u16 LE index, as hex."""
    return F.lower(F.concat(F.hex(transaction_id), _byte(idx % 256), _byte(F.floor(idx / 256))))


def _byte(number: Column) -> Column:
    return F.lpad(F.hex(number), 2, "0")


def _u64_hex(number: Column) -> Column:
    """Return a long as 16 hex digits, little-endian."""
    digits = F.lpad(F.hex(number), 16, "0")
    return reduce(F.concat, [F.substring(digits, at, 2) for at in range(15, 0, -2)])
