"""Operations: what the explorer says of a message's transactions on both chains.

Documents of Wormholescan's ``GET /api/v1/operations``, one a line: those that a live source has landed, or
files below ``[wormhole] operations``. ``targetChain`` (wormhole-foundation/wormhole-explorer,
``api/routes/wormscan/operations/response.go``) is absent as long as the explorer knows no redemption.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from permalake.errors import ConfigError
from permalake.pipeline.line_files import files_below, refuse_damaged
from permalake.pipeline.line_tasks import json_documents

_FIELDS = (
    "id string, targetChain struct<chainId: int, timestamp: string, `transaction`: struct<txHash: string>, "
    "status: string, `from`: string, fee: string, "
    "balanceChanges: array<struct<recipient: string, tokenAddress: string>>>"
)


def files_of(path: Path) -> list[Path]:
    """Return the files of operations below a path.

    Raises:
        ConfigError: The path does not exist.
        InvalidInputError: A gzip file is damaged.
    """
    if not path.exists():
        raise ConfigError(f"wormhole.operations: {path} does not exist; point it at a folder or leave it out")
    files = files_below(path, (".jsonl", ".jsonl.gz"))
    refuse_damaged(files, "wormhole.operations")
    return files


def reported_sides(spark: SparkSession, files: Sequence[Path | str]) -> DataFrame:
    """Return what operations say of redemptions, one row per operation whose message is named.

    Columns: row_key, is_told, chain, status, tx_id, time, sender, fee, receivers, tokens.
    """
    return (
        json_documents(spark, files, _FIELDS)
        .select(
            row_key_of(F.col("id")).alias("row_key"),
            F.col("targetChain").isNotNull().alias("is_told"),
            F.col("targetChain.chainId").alias("chain"),
            F.col("targetChain.status").alias("status"),
            F.col("targetChain.transaction.txHash").alias("tx_id"),
            F.col("targetChain.timestamp").alias("time"),
            F.col("targetChain.from").alias("sender"),
            F.col("targetChain.fee").alias("fee"),
            F.col("targetChain.balanceChanges.recipient").alias("receivers"),
            F.col("targetChain.balanceChanges.tokenAddress").alias("tokens"),
        )
        .where("row_key IS NOT NULL")
    )


def row_key_of(identity: Column) -> Column:
    """``chain/emitter/sequence`` as the key of the tables; null where it is no such thing."""
    parts = F.regexp_extract(identity, r"^([0-9]{1,5})/([0-9a-fA-F]{64})/([0-9]{1,20})$", 0)
    chain, emitter, sequence = (F.split_part(identity, F.lit("/"), F.lit(part)) for part in (1, 2, 3))
    return F.when(parts != "", row_key(chain, emitter, sequence))


def row_key(chain: Column, emitter: Column, sequence: Column) -> Column:
    """Return the parts of a message's identity, as text, as the key of the tables."""
    padded = F.when(F.length(sequence) < 16, F.lpad(sequence, 16, "0")).otherwise(sequence)
    return F.concat_ws(":", chain, F.lower(emitter), padded)
