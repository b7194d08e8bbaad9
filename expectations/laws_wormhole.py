"""Laws across the tables of a Wormhole day."""

from __future__ import annotations

from permalake.audit.laws import balance, covered, entries, violations
from permalake.audit.suite import WARNING
from permalake.iota.laws.tangle_laws import side
from permalake.wormhole.laws.bridge_laws import (
    AT_ROUTE,
    far_quotes,
    keys,
    lost_quotes,
    missing_prices,
    priced_denied,
    receivers,
    routed,
    unexplained,
    unpriced,
    wrong_sums,
    wrong_values,
)

OF_MESSAGES = (
    "token_transfer_payload",
    "asset_meta_payload",
    "nft_transfer_payload",
    "governance_actions",
    "observations",
)

EVENTS = (
    balance(
        "vaa_of_every_message",
        "quorum_state",
        "Row keys are those of message_publication.",
        expected=keys("message_publication"),
        found=keys("quorum_state"),
    ),
    *(
        covered(
            f"{table}_has_message",
            table,
            "Every row's key is in message_publication.",
            things=keys(table),
            known=keys("message_publication"),
        )
        for table in OF_MESSAGES
    ),
    balance(
        "details_of_every_transfer",
        "token_transfer_details",
        "Every token transfer has its details.",
        expected=keys("token_transfer_payload"),
        found=keys("token_transfer_details"),
    ),
    covered(
        "chain_details_of_every_transfer",
        "chain_details",
        "Every token and NFT transfer has its chain details.",
        things=keys("token_transfer_payload", "nft_transfer_payload"),
        known=keys("chain_details"),
    ),
    covered(
        "chain_details_have_message",
        "chain_details",
        "Every row's key is in message_publication.",
        things=keys("chain_details"),
        known=keys("message_publication"),
    ),
)

VALUES = (
    violations(
        "notional_is_amount_times_price",
        "token_transfer_details",
        "notional_usd is amount x token_price_usd, half-even to 8 places.",
        wrong_values,
    ),
    violations(
        "denied_tokens_have_no_price", "token_transfer_details", "Denied tokens get no price.", priced_denied
    ),
    violations(
        "quote_within_window", "token_transfer_details", "A quote is near the VAA in time.", far_quotes
    ),
    violations("quotes_are_kept", "token_prices", "Every quote that served is kept.", lost_quotes),
    violations(
        "few_prices_missing",
        "token_transfer_details",
        "No more transfers of listed tokens lack a price than prices.max_missing allows.",
        missing_prices,
    ),
    violations(
        "few_without_value",
        "token_transfer_details",
        "Most transfers with a known amount have a value.",
        unpriced,
        severity=WARNING,
    ),
)

DAYS = (
    balance(
        "verified_adds_up",
        "messages_daily",
        "verified is the number of messages of the chain.",
        expected=side("message_publication", "concat('chain ', emitter_chain)"),
        found=side("messages_daily", "concat('chain ', emitter_chain)", "verified"),
    ),
    violations(
        "quarantined_is_in_quarantine",
        "messages_daily",
        "No more VAAs are counted as quarantined than quarantine holds.",
        unexplained,
    ),
    balance(
        "transfers_add_up",
        "notional_transferred_daily",
        "transfers is the number of transfers of the route and token.",
        expected=lambda scope: entries(routed(scope), AT_ROUTE),
        found=side("notional_transferred_daily", AT_ROUTE, "transfers"),
    ),
    violations(
        "sums_add_up",
        "notional_transferred_daily",
        "amount and notional_usd are the sums of the transfers of the route and token.",
        wrong_sums,
    ),
    balance(
        "receivers_add_up",
        "addresses_daily",
        "addresses is the number of distinct receivers on the chain.",
        expected=receivers,
        found=side("addresses_daily", "concat('chain ', target_chain)", "addresses"),
    ),
)

LAWS = (*EVENTS, *VALUES, *DAYS)
