"""Judged VAAs → the tables of events."""

from __future__ import annotations

from pyspark.sql import DataFrame

from permalake.wormhole.tables import payload_tables as payloads
from permalake.wormhole.tables import verified_vaas as vaas
from permalake.wormhole.tables.governance_actions import governance_actions
from permalake.wormhole.tables.messages_daily import messages_daily


def events(judged: DataFrame) -> dict[str, DataFrame]:
    """Return the frames of a day's event tables by name, ``messages_daily`` among them."""
    publications = vaas.published(judged)
    return {
        "message_publication": publications,
        "quorum_state": vaas.quorum_state(judged),
        "token_transfer_payload": payloads.token_transfer_payload(judged),
        "asset_meta_payload": payloads.asset_meta_payload(judged),
        "nft_transfer_payload": payloads.nft_transfer_payload(judged),
        "application_messages": payloads.application_messages(judged),
        "application_transfers": payloads.application_transfers(judged),
        "relayer_deliveries": payloads.relayer_deliveries(judged),
        "governance_actions": governance_actions(publications),
        "messages_daily": messages_daily(judged),
    }
