"""Transfers and what was told of them → ``chain_details``.

Documents and addresses tell the receiver, and of a token that comes home what it is there. Everything else
(the sender, the owner of a Solana token account, the wrapped asset on the target chain) comes from
``chain_answers``, and is null where these hold nothing.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from permalake.transforms.wormhole_amounts import native_account, native_token
from permalake.transforms.wormhole_chain_questions import OWNER, SENDER, WRAPPED, wrapped_subject
from permalake.transforms.wormhole_reported import REPORTED

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


def chain_details(
    known_transfers: DataFrame, nfts: DataFrame, answers: DataFrame, reference: Path | None
) -> DataFrame:
    """Rows of ``chain_details`` for every token and NFT transfer. ``known_transfers`` carry the token's
    symbol and name, ``nfts`` are rows of ``nft_transfer_payload``, ``answers`` rows of ``chain_answers`` that
    hold an answer. What a chain's RPC told of a sender goes before what the source's API reported."""
    tokens = known_transfers.select(*_ROUTE, wrapped_subject().alias("asset"))
    # The token bridge wraps no NFTs.
    routes = tokens.unionByName(nfts.select(*_ROUTE, F.lit(None).cast("string").alias("asset")))
    wrapped = _told(answers, WRAPPED, "target_chain", "asset").select(
        "target_chain",
        "asset",
        "address",
        *(F.col(name).alias(f"asset_{name}") for name in ("symbol", "name")),
    )
    owners = _told(answers, OWNER, "target_chain", "target_address")
    senders, reported = (
        _told(answers, kind, "emitter_chain", "row_key").select(
            "row_key", "date", F.col("address").alias(kind)
        )
        for kind in (SENDER, REPORTED)
    )
    told = (
        routes.join(senders, ["row_key", "date"], "left")
        .join(reported, ["row_key", "date"], "left")
        .join(
            owners.select("target_chain", "target_address", F.col("address").alias("owner")),
            ["target_chain", "target_address"],
            "left",
        )
        .join(wrapped, ["target_chain", "asset"], "left")
    )
    receiver = native_account(F.col("target_chain"), F.col("target_address"), reference)
    itself = native_token(F.col("origin_chain"), F.col("origin_address"), reference)
    return told.select(
        "row_key",
        F.coalesce(SENDER, REPORTED).alias("sender_address"),
        F.coalesce(F.col("owner"), receiver).alias("receiver_address"),
        _at_home(itself, "address").alias("resulting_token_address"),
        _at_home(F.col("symbol"), "asset_symbol").alias("resulting_token_symbol"),
        _at_home(F.col("name"), "asset_name").alias("resulting_token_name"),
        "date",
    )


def _told(answers: DataFrame, question: str, chain: str, subject: str) -> DataFrame:
    return (
        answers.where(F.col("question") == question)
        .withColumnRenamed("chain", chain)
        .withColumnRenamed("subject", subject)
    )


def _at_home(value: Column, elsewhere: str) -> Column:
    return F.when(F.col("origin_chain") == F.col("target_chain"), value).otherwise(F.col(elsewhere))
