"""Contract of the Bigtable event tables: families, their qualifiers, and the lake columns that fill them."""

from __future__ import annotations

from dataclasses import dataclass

from permalake.config.stores import BigtableSettings
from permalake.contracts.schema import Table
from permalake.wormhole.contracts import tables


@dataclass(frozen=True)
class Family:
    """A column family of the v2 table: one lake table, qualifier -> lake column."""

    name: str
    table: Table
    cells: dict[str, str]


FAMILIES = (
    Family(
        "MessagePublication",
        tables.MESSAGE_PUBLICATION,
        {
            "Version": "version",
            "GuardianSetIndex": "guardian_set_index",
            "Timestamp": "timestamp",
            "Nonce": "nonce",
            "Sequence": "sequence",
            "EmitterChain": "emitter_chain",
            "EmitterAddress": "emitter_address",
            "InitiatingTxID": "initiating_tx_id",
            "Payload": "payload",
        },
    ),
    Family("QuorumState", tables.QUORUM_STATE, {"SignedVAA": "signed_vaa"}),
    Family(
        "TokenTransferPayload",
        tables.TOKEN_TRANSFER_PAYLOAD,
        {
            "PayloadId": "payload_id",
            "Amount": "amount",
            "OriginAddress": "origin_address",
            "OriginChain": "origin_chain",
            "TargetAddress": "target_address",
            "TargetChain": "target_chain",
        },
    ),
    Family(
        "AssetMetaPayload",
        tables.ASSET_META_PAYLOAD,
        {
            "PayloadId": "payload_id",
            "TokenAddress": "token_address",
            "TokenChain": "token_chain",
            "Decimals": "decimals",
            "Symbol": "symbol",
            "Name": "name",
        },
    ),
    Family(
        "NFTTransferPayload",
        tables.NFT_TRANSFER_PAYLOAD,
        {
            "PayloadId": "payload_id",
            "OriginAddress": "origin_address",
            "OriginChain": "origin_chain",
            "Symbol": "symbol",
            "Name": "name",
            "TokenId": "token_id",
            "URI": "uri",
            "TargetAddress": "target_address",
            "TargetChain": "target_chain",
        },
    ),
    Family(
        "TokenTransferDetails",
        tables.TOKEN_TRANSFER_DETAILS,
        {
            "Amount": "amount",
            "NotionalUSD": "notional_usd",
            "OriginSymbol": "origin_symbol",
            "OriginName": "origin_name",
            "OriginTokenAddress": "origin_token_address",
        },
    ),
    Family(
        "ChainDetails",
        tables.CHAIN_DETAILS,
        {
            "SenderAddress": "sender_address",
            "ReceiverAddress": "receiver_address",
            "ResultingTokenAddress": "resulting_token_address",
            "ResultingTokenSymbol": "resulting_token_symbol",
            "ResultingTokenName": "resulting_token_name",
        },
    ),
)
"""Families of the v2 table."""

SIGNATURES = "Signatures"
VAA_STATE = "VAAState"
FAMILIES_V1 = ("MessagePublication", SIGNATURES, VAA_STATE, "QuorumState")
"""Families of the v1 table."""


def prefix_of_chain(chain: int) -> str:
    """Return the row-key prefix of a chain; the colon keeps chains 10 to 19 out of a scan of chain 1."""
    return f"{chain}:"


def prefix_of_emitter(chain: int, address: str) -> str:
    """Return the row-key prefix of an emitter."""
    return f"{chain}:{address}:"


def tables_of(settings: BigtableSettings) -> dict[str, str]:
    """Return the published tables by version (``v2``, ``v1``); none when Bigtable is not configured.

    Project and instance may come from an Airflow connection, so they are looked at when a client is opened.
    """
    tables = {"v2": settings.table, "v1": settings.table_v1}
    return {version: name for version, name in tables.items() if name}
