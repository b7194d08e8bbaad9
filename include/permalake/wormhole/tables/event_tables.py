"""Judged VAAs → the tables of events."""

from __future__ import annotations

from pyspark.sql import DataFrame

from permalake.wormhole.tables import payload_tables as payloads
from permalake.wormhole.tables import verified_vaas as vaas
from permalake.wormhole.tables.attested_tokens import attested_tokens
from permalake.wormhole.tables.governance_actions import governance_actions
from permalake.wormhole.tables.messages_daily import messages_daily


def events(judged: DataFrame, attested_before: DataFrame) -> dict[str, DataFrame]:
    """Return the frames of a day's event tables by name, ``messages_daily`` among them.

    ``attested_before`` are the ``attested_tokens`` rows of the latest day before the range.
    """
    publications, metas = vaas.published(judged), payloads.asset_meta_payload(judged)
    return {
        "message_publication": publications,
        "quorum_state": vaas.quorum_state(judged),
        "token_transfer_payload": payloads.token_transfer_payload(judged),
        "asset_meta_payload": metas,
        "nft_transfer_payload": payloads.nft_transfer_payload(judged),
        "governance_actions": governance_actions(publications),
        "attested_tokens": attested_tokens(metas, publications, attested_before),
        "messages_daily": messages_daily(judged),
    }
