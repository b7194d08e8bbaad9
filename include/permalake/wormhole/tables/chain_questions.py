"""Transfers → the questions that only the chains' RPCs can answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

import pyarrow as pa

from permalake.contracts.sql_text import same
from permalake.wormhole.tables.moved_tokens import NOT_BRIDGED

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
NEWEST_FIRST = "asked_at DESC, date"
"""The order of stored answers to a question: the first counts. Corrected facts have earlier dates."""
QUESTIONS, WITH_DECIMALS = "questions", "tokens_with_decimals"
SCHEMA = pa.schema(
    [
        *(("chain", pa.int32()), ("question", pa.string()), ("subject", pa.string())),
        *(("date", pa.date32()), ("tx_id", pa.string()), ("at", pa.int64())),
    ]
)
"""Columns of the questions; ``at``: unix seconds."""

_SECONDS = "epoch_us(published.timestamp) // 1000000"


class RpcChain(Protocol):
    """The facts about a chain that its questions depend on."""

    @property
    def family(self) -> str | None:
        """Form of its addresses, such as ``evm``."""
        ...


def chains_with_mints(chains: Mapping[int, RpcChain]) -> list[int]:
    """Return the chains on which each NFT has a mint of its own."""
    return [number for number, chain in chains.items() if chain.family == "solana"]


def questions(chains: Mapping[int, RpcChain]) -> str:
    """Return the query of the distinct questions to chains whose family has a supported RPC.

    It reads tables of some days, and :data:`WITH_DECIMALS`, the tokens whose decimals are known. Tokens whose
    32 bytes are a hash are asked for by name, unless ``native_token`` has it. A wrapped NFT is named by its
    collection, one contract on an EVM chain; on Solana, where each NFT has a mint, with its token id.
    """

    def asked(kind: str, chain: str, subject: str, tx_id: str = "CAST(NULL AS STRING)", at: str = "0") -> str:
        return (
            f"SELECT {chain} AS chain, '{kind}' AS question, {subject} AS subject, t.date, "
            f"{tx_id} AS tx_id, {at} AS at"
        )

    def of(kind: str, chain: str) -> str:
        return among(
            chain, [number for number, info in chains.items() if kind in ASKED.get(info.family or "", ())]
        )

    asset = "concat_ws(':', CAST(origin_chain AS STRING), origin_address)"
    mint = f"CASE WHEN {among('target_chain', chains_with_mints(chains))} THEN token_id END"
    nft = f"concat_ws(':', CAST(origin_chain AS STRING), origin_address, {mint})"
    return f"""
WITH routes AS (
    SELECT date, row_key, target_chain, target_address FROM token_transfer_payload
    UNION ALL
    SELECT date, row_key, target_chain, target_address FROM nft_transfer_payload
), needed AS (
    SELECT date, origin_chain, origin_address FROM token_transfer_payload
    UNION ALL
    SELECT date, token_chain, token_address FROM application_transfers
    WHERE {NOT_BRIDGED} AND amount_decimals IS NULL
), asked AS (
    {asked(SENDER, "emitter_chain", "t.row_key", "initiating_tx_id", _SECONDS)}
    FROM routes AS t JOIN message_publication AS published
    ON t.date = published.date AND t.row_key = published.row_key WHERE {of(SENDER, "emitter_chain")}
    UNION ALL
    {asked(OWNER, "target_chain", "target_address")}
    FROM routes AS t WHERE {of(OWNER, "target_chain")}
    UNION ALL
    {asked(WRAPPED, "target_chain", asset)}
    FROM token_transfer_payload AS t WHERE origin_chain <> target_chain AND {of(WRAPPED, "target_chain")}
    UNION ALL
    {asked(WRAPPED_NFT, "target_chain", nft)}
    FROM nft_transfer_payload AS t WHERE origin_chain <> target_chain AND {of(WRAPPED_NFT, "target_chain")}
    UNION ALL
    {asked(TOKEN, "t.origin_chain", "t.origin_address")}
    FROM needed AS t ANTI JOIN {WITH_DECIMALS} AS described
    ON {same("t", "described", "date", "origin_chain", "origin_address")}
    WHERE {of(TOKEN, "t.origin_chain")}
    UNION ALL
    {asked(NATIVE, "origin_chain", "origin_address")}
    FROM (SELECT DISTINCT date, origin_chain, origin_address FROM token_transfer_payload
        WHERE {of(NATIVE, "origin_chain")}) AS t
    WHERE native_token(origin_chain, origin_address) IS NULL
)
SELECT DISTINCT * FROM asked
"""


def among(column: str, numbers: Iterable[int]) -> str:
    """Return the condition that a column has one of these numbers."""
    listed = ", ".join(map(str, numbers))
    return f"{column} IN ({listed})" if listed else "false"
