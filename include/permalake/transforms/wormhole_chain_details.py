"""Transfers → ``chain_details``, as far as the documents and the addresses themselves tell.

Without a chain's RPC nobody knows the sender, the owner of a Solana token account or the wrapped asset on the
target chain: those stay null. A token that comes home is itself there, so its address, symbol and name are
known.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from permalake.transforms.wormhole_amounts import native_account, native_token

_ROUTE = (
    "row_key",
    "date",
    "origin_chain",
    "origin_address",
    "target_chain",
    "target_address",
    "symbol",
    "name",
)


def chain_details(known_transfers: DataFrame, nfts: DataFrame, reference: Path | None) -> DataFrame:
    """Rows of ``chain_details`` for every token and NFT transfer. ``known_transfers`` carry the token's
    symbol and name, ``nfts`` are rows of ``nft_transfer_payload``."""
    routes = known_transfers.select(*_ROUTE).unionByName(nfts.select(*_ROUTE))
    receiver = native_account(F.col("target_chain"), F.col("target_address"), reference)
    itself = native_token(F.col("origin_chain"), F.col("origin_address"), reference)
    return routes.select(
        "row_key",
        F.lit(None).cast("string").alias("sender_address"),
        receiver.alias("receiver_address"),
        _at_home(itself).alias("resulting_token_address"),
        _at_home(F.col("symbol")).alias("resulting_token_symbol"),
        _at_home(F.col("name")).alias("resulting_token_name"),
        "date",
    )


def _at_home(value: Column) -> Column:
    return F.when(F.col("origin_chain") == F.col("target_chain"), value)
