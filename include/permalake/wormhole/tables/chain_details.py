"""Transfers and answers of the chains → ``chain_details``.

Documents and addresses tell the receiver, and of a token that comes home what it is there. Everything else
(the sender, the owner of a Solana token account, the wrapped asset on the target chain) comes from
``chain_answers``, and is null where these hold nothing.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from permalake.wormhole.reference import load_reference
from permalake.wormhole.tables.chain_questions import (
    OWNER,
    SENDER,
    WRAPPED,
    WRAPPED_NFT,
    wrapped_nft_subject,
    wrapped_subject,
)
from permalake.wormhole.tables.exact_amounts import native_account, native_token, word
from permalake.wormhole.tables.reported_details import REPORTED

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
_SPL_COLLECTION = "01" * 32
"""Address under which Solana's NFT bridge sends every NFT of Solana; the token id is the NFT's mint
(wormhole-foundation/wormhole, ``solana/modules/nft_bridge``)."""


def chain_details(
    known_transfers: DataFrame, nfts: DataFrame, answers: DataFrame, reference: Path | None
) -> DataFrame:
    """Return the rows of ``chain_details``, one per token and NFT transfer.

    ``known_transfers`` carry the token's symbol, name and native form (``native_token``), ``nfts`` are rows
    of ``nft_transfer_payload``, ``answers`` rows of ``chain_answers`` that hold an answer. For a sender the
    chain's RPC has precedence over the source's API.
    """
    token, nft = F.col("origin_address"), wrapped_nft_subject(load_reference(reference).chains)
    mint = F.when(token == _SPL_COLLECTION, word(F.col("token_id"))).otherwise(token)
    itself = native_token(F.col("origin_chain"), mint, reference)
    routes = known_transfers.select(*_route(WRAPPED, wrapped_subject(), F.col("native_token"))).unionByName(
        nfts.select(*_route(WRAPPED_NFT, nft, itself))
    )
    wrapped = _told(answers, F.col("question").isin(WRAPPED, WRAPPED_NFT), "target_chain", "asset").select(
        "target_chain",
        "question",
        "asset",
        "address",
        *(F.col(name).alias(f"asset_{name}") for name in ("symbol", "name")),
    )
    owners = _told(answers, F.col("question") == OWNER, "target_chain", "target_address")
    senders, reported = (
        _told(answers, F.col("question") == kind, "emitter_chain", "row_key").select(
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
        .join(wrapped, ["target_chain", "question", "asset"], "left")
    )
    receiver = native_account(F.col("target_chain"), F.col("target_address"), reference)
    return told.select(
        "row_key",
        F.coalesce(SENDER, REPORTED).alias("sender_address"),
        F.coalesce(F.col("owner"), receiver).alias("receiver_address"),
        _at_home(F.col("itself"), "address").alias("resulting_token_address"),
        _at_home(F.col("symbol"), "asset_symbol").alias("resulting_token_symbol"),
        _at_home(F.col("name"), "asset_name").alias("resulting_token_name"),
        "date",
    )


def _route(question: str, asset: Column, itself: Column) -> list[Column]:
    """Return a transfer's route, the question and subject of its wrapped token, and the token at home."""
    named = (F.lit(question).alias("question"), asset.alias("asset"), itself.alias("itself"))
    return [*map(F.col, _ROUTE), *named]


def _told(answers: DataFrame, questions: Column, chain: str, subject: str) -> DataFrame:
    return answers.where(questions).withColumnRenamed("chain", chain).withColumnRenamed("subject", subject)


def _at_home(value: Column, elsewhere: str) -> Column:
    return F.when(F.col("origin_chain") == F.col("target_chain"), value).otherwise(F.col(elsewhere))
