"""Laws of events: every row belongs to a verified VAA, every VAA has its rows."""

from __future__ import annotations

from permalake.audit.laws import balance, covered, entries, union

_OF_MESSAGES = (
    "token_transfer_payload",
    "asset_meta_payload",
    "nft_transfer_payload",
    "governance_actions",
    "observations",
)


def _keys(*tables: str) -> str:
    """Return a side of the row keys of tables."""
    return union(entries(table, "row_key") for table in tables)


LAWS = (
    balance(
        "vaa_of_every_message",
        "quorum_state",
        "Row keys are those of message_publication.",
        expected=_keys("message_publication"),
        actual=_keys("quorum_state"),
    ),
    *(
        covered(
            f"{table}_has_message",
            table,
            "Every row's key is in message_publication.",
            things=_keys(table),
            allowed=_keys("message_publication"),
        )
        for table in _OF_MESSAGES
    ),
    balance(
        "details_of_every_transfer",
        "token_transfer_details",
        "Every token transfer has its details.",
        expected=_keys("token_transfer_payload"),
        actual=_keys("token_transfer_details"),
    ),
    covered(
        "chain_details_of_every_transfer",
        "chain_details",
        "Every token and NFT transfer has its chain details.",
        things=_keys("token_transfer_payload", "nft_transfer_payload"),
        allowed=_keys("chain_details"),
    ),
    covered(
        "chain_details_have_message",
        "chain_details",
        "Every row's key is in message_publication.",
        things=_keys("chain_details"),
        allowed=_keys("message_publication"),
    ),
)
