"""Judged VAAs → the tables of events."""

from __future__ import annotations

from pyspark.sql import DataFrame

from permalake.transforms import wormhole_payloads as payloads
from permalake.transforms import wormhole_vaas as vaas
from permalake.transforms.wormhole_messages_daily import messages_daily


def events(judged: DataFrame) -> dict[str, DataFrame]:
    """Frames by table name. ``messages_daily`` is among them, as it counts what was refused too."""
    return {
        "message_publication": vaas.published(judged),
        "quorum_state": vaas.quorum_state(judged),
        "token_transfer_payload": payloads.token_transfer_payload(judged),
        "asset_meta_payload": payloads.asset_meta_payload(judged),
        "nft_transfer_payload": payloads.nft_transfer_payload(judged),
        "messages_daily": messages_daily(judged),
    }
