"""Transfers, and what operations tell of them → rows of ``redemptions``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from permalake.wormhole.contracts.redemption_tables import (
    COMPLETED,
    EXPLORER,
    FAILED,
    IN_FLIGHT,
    REDEMPTIONS,
    RPC,
    UNKNOWN,
)

_PRECEDENCE = (COMPLETED, FAILED, UNKNOWN, IN_FLIGHT)
"""As the explorer itself ranks what it learns of a redemption: a final word replaces a weaker one."""
_TOLD = ("target_tx_id", "redeemed_at", "redeemer", "fee", "receiver_address", "token_address")
_KEY = ("row_key", "date")


SENT = """
WITH routes AS (
    SELECT date, row_key, target_chain, 'token' AS bridge FROM token_transfer_payload
    UNION ALL
    SELECT date, row_key, target_chain, 'nft' FROM nft_transfer_payload
)
SELECT t.row_key, t.date, target_chain, bridge, digest, epoch_us(published.timestamp) // 1000000 AS at
FROM routes AS t JOIN message_publication AS published
ON t.date = published.date AND t.row_key = published.row_key
"""
"""Query of token and NFT transfers."""
SENT_TRANSFER = pa.schema(
    [
        *(("row_key", pa.string()), ("date", pa.date32()), ("target_chain", pa.int32())),
        *(("bridge", pa.string()), ("digest", pa.string()), ("at", pa.int64())),
    ]
)
"""Columns of transfers; ``at``: unix seconds."""


def reported_redemptions(sent: DataFrame, reported: DataFrame, evm_chains: Sequence[int]) -> DataFrame:
    """Return rows of ``redemptions`` from operations, at most one per transfer.

    ``reported`` has row_key, is_told (whether there is a ``targetChain``), chain, status, tx_id, time,
    sender, fee, receivers and tokens (of its balance changes). What is told of another chain than the
    transfer's target is left out. Of several operations of one transfer the one with the strongest status
    counts.
    """
    mine = reported.join(sent, "row_key").where(~F.col("is_told") | (F.col("chain") == F.col("target_chain")))
    is_known = F.col("status").isin(COMPLETED, FAILED)
    status = F.when(~F.col("is_told"), IN_FLIGHT).when(is_known, F.col("status")).otherwise(UNKNOWN)
    completed = mine.select(
        *_KEY,
        "target_chain",
        status.alias("status"),
        _transaction(evm_chains).alias("target_tx_id"),
        F.try_to_timestamp(F.col("time")).alias("redeemed_at"),
        _text("sender").alias("redeemer"),
        _decimal("fee").alias("fee"),
        _only("receivers").alias("receiver_address"),
        _only("tokens").alias("token_address"),
    )
    rank = F.array_position(F.array(*map(F.lit, _PRECEDENCE)), F.col("status"))
    best = completed.groupBy(*_KEY, "target_chain").agg(F.min(F.struct(rank, "status", *_TOLD)).alias("best"))
    return best.select(
        *_KEY,
        "target_chain",
        "best.status",
        *(f"best.{name}" for name in _TOLD),
        F.lit(EXPLORER).alias("source"),
        F.current_timestamp().alias("asked_at"),
    )


def news(rows: DataFrame, before: DataFrame) -> DataFrame:
    """Return the rows that say something that none ``before`` of the same transfer and source says."""
    same = [name for name in REDEMPTIONS.names if name != "asked_at"]
    equal = [F.col(f"new.{name}").eqNullSafe(F.col(f"old.{name}")) for name in same]
    return rows.alias("new").join(before.alias("old"), reduce(Column.__and__, equal), "left_anti")


def unsettled(sent: DataFrame, redemptions: DataFrame, *, again: bool) -> DataFrame:
    """Return the transfers whose redemption a chain can tell more of than is known.

    Those without a completed redemption, or without its transaction where bridges log it. Unless ``again``,
    without those that their chain was asked about.
    """
    has_transaction = F.col("target_tx_id").isNotNull() | (F.col("bridge") == "nft")
    is_settled = (F.col("status") == COMPLETED) & has_transaction
    if not again:
        is_settled |= F.col("source") == RPC
    settled = redemptions.join(sent.select(*_KEY, "bridge"), [*_KEY]).where(is_settled).select(*_KEY)
    return sent.join(settled, [*_KEY], "left_anti")


def in_flight(sent: DataFrame, redemptions: DataFrame) -> DataFrame:
    """Return the transfers without a completed redemption."""
    return sent.join(redemptions.where(F.col("status") == COMPLETED).select(*_KEY), [*_KEY], "left_anti")


def untold(sent: DataFrame, redemptions: DataFrame) -> DataFrame:
    """Return the transfers of which nothing is known."""
    return sent.join(redemptions.select(*_KEY), [*_KEY], "left_anti")


def _text(name: str) -> Column:
    return F.nullif(F.trim(name), F.lit(""))


def _transaction(evm_chains: Sequence[int]) -> Column:
    tx_id = _text("tx_id")
    on_evm = F.col("target_chain").isin(*evm_chains) & tx_id.rlike("^(0[xX])?[0-9a-fA-F]{64}$")
    return F.when(on_evm, F.concat(F.lit("0x"), F.lower(F.right(tx_id, F.lit(64))))).otherwise(tx_id)


def _decimal(name: str) -> Column:
    """Return a decimal number as text without needless zeros; null where it is no such number."""
    plain = F.when(_text(name).rlike("^[0-9]+([.][0-9]+)?$"), _text(name))
    cut = F.regexp_replace(F.regexp_replace(plain, "([.][0-9]*?)0+$", "$1"), "[.]$", "")
    return F.regexp_replace(cut, "^0+(?=[0-9])", "")


def _only(name: str) -> Column:
    """Return the one distinct text of an array; null where there are none or several."""
    distinct = F.array_distinct(F.filter(name, lambda text: F.length(F.trim(text)) > 0))
    return F.when(F.size(distinct) == 1, F.element_at(distinct, 1))
