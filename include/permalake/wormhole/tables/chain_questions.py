"""Transfers → the questions that only the chains' RPCs can answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from pathlib import Path
from typing import Protocol

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from permalake.wormhole.tables.exact_amounts import native_token

SENDER, OWNER, WRAPPED, TOKEN = "sender", "owner", "wrapped", "token"
WRAPPED_NFT, NATIVE = "wrapped_nft", "native"
ASKED = {
    "evm": (SENDER, WRAPPED, WRAPPED_NFT, TOKEN),
    "solana": (SENDER, OWNER, WRAPPED, WRAPPED_NFT, TOKEN),
    "cosmos": (NATIVE,),
    "aptos": (NATIVE,),
}
"""Questions that the RPC of a chain can answer, by the chain's family."""
QUESTION = ("chain", "question", "subject")


class RpcChain(Protocol):
    """The facts about a chain that its questions depend on."""

    @property
    def family(self) -> str | None:
        """Form of its addresses, such as ``evm``."""
        ...


def wrapped_subject() -> Column:
    """How ``chain_answers`` names the token that is wrapped."""
    return F.concat_ws(":", F.col("origin_chain").cast("string"), F.col("origin_address"))


def wrapped_nft_subject(chains: Mapping[int, RpcChain]) -> Column:
    """Return the subject in ``chain_answers`` of a wrapped NFT.

    Its collection, one contract on an EVM chain; on Solana, where each NFT has a mint, with its token id.
    """
    own = F.when(F.col("target_chain").isin(*chains_with_mints(chains)), F.col("token_id"))
    return F.concat_ws(":", wrapped_subject(), own)


def chains_with_mints(chains: Mapping[int, RpcChain]) -> list[int]:
    """Return the chains on which each NFT has a mint of its own."""
    return [number for number, chain in chains.items() if chain.family == "solana"]


def questions(
    transfers: DataFrame,
    nfts: DataFrame,
    events: DataFrame,
    metadata: DataFrame,
    chains: Mapping[int, RpcChain],
    *,
    others: DataFrame | None = None,
    reference: Path | None = None,
) -> DataFrame:
    """Return the distinct questions to chains whose family has a supported RPC.

    Columns: chain, question, subject, date, tx_id, at (unix seconds).

    ``transfers``, ``nfts`` and ``events`` are rows of ``token_transfer_payload``, ``nft_transfer_payload``
    and ``message_publication`` of some days; ``metadata`` are the tokens whose decimals are known, ``others``
    (date, origin_chain, origin_address) more tokens whose decimals are needed. Tokens
    whose 32 bytes are a hash are asked for by name, unless the reference data (``reference``: those
    configured) have it.
    """
    routes = transfers.select("row_key", "date", "target_chain", "target_address").unionByName(
        nfts.select("row_key", "date", "target_chain", "target_address")
    )
    published = events.select(
        "row_key",
        "date",
        F.col("emitter_chain").alias("chain"),
        F.col("initiating_tx_id").alias("tx_id"),
        F.unix_seconds("timestamp").alias("at"),
    )
    senders = routes.join(published, ["date", "row_key"]).select(
        *_named("chain", SENDER, F.col("row_key")), "tx_id", "at"
    )
    owners = routes.select(*_named("target_chain", OWNER, F.col("target_address")), *_no_transaction())
    wrapped, wrapped_nfts = (
        frame.where("origin_chain != target_chain").select(
            *_named("target_chain", kind, subject), *_no_transaction()
        )
        for kind, frame, subject in (
            (WRAPPED, transfers, wrapped_subject()),
            (WRAPPED_NFT, nfts, wrapped_nft_subject(chains)),
        )
    )
    known = metadata.where("decimals IS NOT NULL").select("date", "origin_chain", "origin_address")
    needed = transfers.select(*known.columns)
    needed = needed if others is None else needed.unionByName(others.select(*known.columns))
    untold = needed.join(known, known.columns, "left_anti")
    tokens = untold.select(*_named("origin_chain", TOKEN, F.col("origin_address")), *_no_transaction())
    hashed = transfers.where(F.col("origin_chain").isin(*_chains(chains, NATIVE))).select(
        "date", "origin_chain", "origin_address"
    )
    nameless = hashed.distinct().where(
        native_token(F.col("origin_chain"), F.col("origin_address"), reference).isNull()
    )
    names = nameless.select(*_named("origin_chain", NATIVE, F.col("origin_address")), *_no_transaction())
    asked = {
        SENDER: senders,
        OWNER: owners,
        WRAPPED: wrapped,
        WRAPPED_NFT: wrapped_nfts,
        TOKEN: tokens,
        NATIVE: names,
    }
    spoken = (frame.where(F.col("chain").isin(*_chains(chains, kind))) for kind, frame in asked.items())
    return reduce(DataFrame.unionByName, spoken).distinct()


def _no_transaction() -> list[Column]:
    return [F.lit(None).cast("string").alias("tx_id"), F.lit(0).cast("long").alias("at")]


def _named(chain: str, kind: str, subject: Column) -> list[Column]:
    return [
        F.col(chain).alias("chain"),
        F.lit(kind).alias("question"),
        subject.alias("subject"),
        F.col("date"),
    ]


def _chains(chains: Mapping[int, RpcChain], kind: str) -> Iterable[int]:
    return [number for number, chain in chains.items() if kind in ASKED.get(chain.family or "", ())]
