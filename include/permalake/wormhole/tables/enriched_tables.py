"""Enriched tables and daily figures of Wormhole days, each one query.

A query reads staged tables of the days, tables of queries before it, and by the names in :data:`INPUTS` what
was found out about their tokens; functions are those of :mod:`permalake.wormhole.tables.amount_queries`.
Columns are cast to the table's contract by whoever runs the query.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from permalake.contracts.sql_text import same
from permalake.wormhole.contracts.value_reasons import NO_AMOUNT, NO_DECIMALS, NO_QUOTE, NO_TOKEN, TOO_LARGE
from permalake.wormhole.tables.amount_queries import amount_sum, usd_sum
from permalake.wormhole.tables.chain_questions import (
    NATIVE,
    OWNER,
    SENDER,
    WRAPPED,
    WRAPPED_NFT,
    RpcChain,
    chains_with_mints,
)
from permalake.wormhole.tables.moved_tokens import NOT_BRIDGED, STATED_AMOUNT
from permalake.wormhole.tables.reported_details import REPORTED

METADATA, QUOTES, CHECKS, FALLBACK_PRICES = "token_metadata", "quotes", "check_quotes", "stand_in_prices"
ANSWERS, LISTED, LIMITS = "known_answers", "listed_tokens", "governor_limits"
_TOKEN_FIELDS = (("origin_chain", pa.int32()), ("origin_address", pa.string()))
_MOMENT, _PRICE = pa.timestamp("us", tz="UTC"), pa.decimal128(38, 18)
_QUOTE = pa.schema(
    [
        *(*_TOKEN_FIELDS, ("at", _MOMENT)),
        *(("price_usd", _PRICE), ("quote_time", _MOMENT), ("provider", pa.string())),
    ]
)
INPUTS = {
    METADATA: pa.schema(
        [
            *(("date", pa.date32()), *_TOKEN_FIELDS, ("decimals", pa.int32())),
            *(("symbol", pa.string()), ("name", pa.string())),
        ]
    ),
    QUOTES: pa.schema(
        [
            *_QUOTE,
            *(("unused_price_usd", _PRICE), ("confidence", pa.float64())),
            *(("contradicting_price_usd", _PRICE), ("reason", pa.string())),
        ]
    ),
    CHECKS: _QUOTE,
    FALLBACK_PRICES: pa.schema(
        [
            *(*_TOKEN_FIELDS, ("at", _MOMENT), ("stand_in", pa.string())),
            *(("stand_in_price_usd", _PRICE), ("stand_in_timestamp", _MOMENT)),
        ]
    ),
    ANSWERS: pa.schema(
        [
            ("chain", pa.int32()),
            *((name, pa.string()) for name in ("question", "subject", "address", "symbol", "name")),
            *(("date", pa.date32()), ("decimals", pa.int32())),
        ]
    ),
    LISTED: pa.schema(_TOKEN_FIELDS),
    LIMITS: pa.schema(
        [
            *(("emitter_chain", pa.int32()), ("since", pa.date32()), ("until", pa.date32())),
            *(("daily_limit_usd", pa.int64()), ("big_transaction_usd", pa.int64())),
        ]
    ),
}
"""What queries read beside tables, with its columns.

Tokens as far as their decimals, symbol and name are known; the quote of a token at a moment, or why there is
none that counts; its cross-checking quote and fallback price, at most one each; rows of ``chain_answers``
that hold an answer; tokens that the governor counts; its limits (``until``: exclusive, null while they hold).
"""

_SPL_COLLECTION = "01" * 32
"""Address under which Solana's NFT bridge sends every NFT of Solana; the token id is the NFT's mint
(wormhole-foundation/wormhole, ``solana/modules/nft_bridge``)."""


def enriched_tables(chains: Mapping[int, RpcChain]) -> dict[str, str]:
    """Return the query of each table, in an order in which none reads a later one."""
    return {
        "token_transfer_details": _TOKEN_TRANSFER_DETAILS,
        "chain_details": _chain_details(chains),
        "application_transfer_details": _APPLICATION_TRANSFER_DETAILS,
        "applications_daily": _APPLICATIONS_DAILY,
        "notional_transferred_daily": _NOTIONAL_TRANSFERRED_DAILY,
        "addresses_daily": _ADDRESSES_DAILY,
        "governor_usage_daily": _GOVERNOR_USAGE_DAILY,
    }


_KEY = ("date", "row_key")
_TOKEN = ("origin_chain", "origin_address")
_TOKEN_MOMENT = (*_TOKEN, "at")
_EMITTER_CHAIN = "CAST(split_part({}.row_key, ':', 1) AS INT)"
_REASON = f"""CASE WHEN notional_usd IS NOT NULL THEN CAST(NULL AS STRING)
        WHEN token_price_usd IS NULL THEN coalesce(lack, '{NO_QUOTE}')
        WHEN {{amount}} IS NULL THEN '{NO_DECIMALS}' ELSE '{TOO_LARGE}' END AS reason"""
_DISTANCE = "floor(abs(epoch_us(quote_time) - epoch_us({}.at)) / 1000000)"

_TOKEN_TRANSFER_DETAILS = f"""
WITH sent AS (
    SELECT t.date, t.row_key, t.origin_chain, t.origin_address, published.timestamp AS at,
        scaled_amount(t.amount, token.decimals) AS amount, token.symbol, token.name
    FROM token_transfer_payload AS t
    JOIN message_publication AS published ON {same("t", "published", *_KEY)}
    LEFT JOIN {METADATA} AS token ON {same("t", "token", "date", *_TOKEN)}
), tokens AS (
    SELECT DISTINCT origin_chain, origin_address FROM token_transfer_payload
), registered AS (
    SELECT chain AS origin_chain, subject AS origin_address, address FROM {ANSWERS}
    WHERE question = '{NATIVE}'
), named AS (
    SELECT tokens.origin_chain, tokens.origin_address,
        coalesce(native_token(tokens.origin_chain, tokens.origin_address), registered.address) AS native
    FROM tokens LEFT JOIN registered ON {same("tokens", "registered", *_TOKEN)}
), valued AS (
    SELECT sent.date, sent.row_key, amount,
        value_in_usd(amount, quote.price_usd) AS notional_usd,
        quote.price_usd AS token_price_usd,
        quote.quote_time AS price_timestamp,
        quote.provider AS price_source,
        {_DISTANCE.format("sent").replace("quote_time", "quote.quote_time")} AS price_distance_seconds,
        checking.price_usd AS check_price_usd,
        checking.quote_time AS check_price_timestamp,
        checking.provider AS check_price_source,
        stand_in, stand_in_price_usd, stand_in_timestamp,
        value_in_usd(amount, stand_in_price_usd) AS stand_in_notional_usd,
        symbol AS origin_symbol, name AS origin_name, native AS origin_token_address,
        quote.reason AS lack, quote.confidence AS price_confidence, unused_price_usd, contradicting_price_usd
    FROM sent
    LEFT JOIN named ON {same("sent", "named", *_TOKEN)}
    LEFT JOIN {QUOTES} AS quote ON {same("sent", "quote", *_TOKEN_MOMENT)}
    LEFT JOIN {CHECKS} AS checking ON {same("sent", "checking", *_TOKEN_MOMENT)}
    LEFT JOIN {FALLBACK_PRICES} AS standing ON {same("sent", "standing", *_TOKEN_MOMENT)}
)
SELECT *, {_REASON.format(amount="amount")} FROM valued
"""

# What the token bridge moves has its value in token_transfer_details; here it is only repeated. Decimals that
# a message states go before the token's.
_APPLICATION_TRANSFER_DETAILS = f"""
WITH own AS (
    SELECT moved.date, moved.row_key, moved.token_chain AS origin_chain,
        moved.token_address AS origin_address, published.timestamp AS at,
        moved.amount, moved.amount_decimals
    FROM application_transfers AS moved
    JOIN message_publication AS published ON {same("moved", "published", *_KEY)}
    WHERE {NOT_BRIDGED}
), measured AS (
    SELECT own.date, own.row_key, own.origin_chain, own.origin_address, own.at, token.symbol, token.name,
        scaled_amount(
            {STATED_AMOUNT}, coalesce(own.amount_decimals, token.decimals)
        ) AS units
    FROM own LEFT JOIN {METADATA} AS token ON {same("own", "token", "date", *_TOKEN)}
), bridged AS (
    SELECT date, row_key FROM application_transfers WHERE in_token_transfers = 1
), valued AS (
    SELECT measured.date, measured.row_key, units,
        value_in_usd(units, price_usd) AS notional_usd,
        price_usd AS token_price_usd, quote_time AS price_timestamp, provider AS price_source,
        {_DISTANCE.format("measured")} AS price_distance_seconds,
        symbol AS token_symbol, name AS token_name, quote.reason AS lack
    FROM measured LEFT JOIN {QUOTES} AS quote ON {same("measured", "quote", *_TOKEN_MOMENT)}
), known AS (
    SELECT date, row_key, units, notional_usd, token_price_usd, price_timestamp, price_source,
        price_distance_seconds, token_symbol, token_name, {_REASON.format(amount="units")}
    FROM valued
    UNION ALL
    SELECT details.date, details.row_key, amount, notional_usd, token_price_usd, price_timestamp,
        price_source, price_distance_seconds, origin_symbol, origin_name, reason
    FROM token_transfer_details AS details SEMI JOIN bridged ON {same("details", "bridged", *_KEY)}
)
SELECT moved.date, moved.row_key, units AS amount, notional_usd, token_price_usd, price_timestamp,
    price_source, price_distance_seconds, token_symbol, token_name,
    native_token(moved.token_chain, moved.token_address) AS token_native_address,
    native_account(moved.target_chain, moved.recipient_address) AS recipient_native_address,
    CASE WHEN notional_usd IS NOT NULL OR moved.in_token_transfers = 1 THEN reason
        WHEN moved.token_address IS NULL THEN '{NO_TOKEN}'
        WHEN moved.amount IS NULL THEN '{NO_AMOUNT}' ELSE reason END AS reason
FROM application_transfers AS moved LEFT JOIN known ON {same("moved", "known", *_KEY)}
"""

# A value counts where the contract is listed: anybody can send what its form alone tells.
_APPLICATIONS_DAILY = f"""
WITH own AS (
    SELECT date, row_key FROM application_transfers WHERE in_token_transfers = 0
), valued AS (
    SELECT details.date, details.row_key, notional_usd, 1 AS moved
    FROM application_transfer_details AS details SEMI JOIN own ON {same("details", "own", *_KEY)}
    UNION ALL SELECT date, row_key, notional_usd, 1 FROM token_transfer_details
), counted AS (
    SELECT sent.date, app_id, {_EMITTER_CHAIN.format("sent")} AS emitter_chain, moved,
        CASE WHEN is_listed = 1 THEN notional_usd END AS value
    FROM application_messages AS sent LEFT JOIN valued ON {same("sent", "valued", *_KEY)}
)
SELECT date, app_id, emitter_chain, count(*) AS messages, count(moved) AS transfers,
    {usd_sum("value")} AS notional_usd
FROM counted GROUP BY date, app_id, emitter_chain
"""

_NOTIONAL_TRANSFERRED_DAILY = f"""
WITH sent AS (
    SELECT t.date, {_EMITTER_CHAIN.format("t")} AS emitter_chain, target_chain, origin_chain, origin_address,
        details.origin_symbol AS symbol, details.amount, details.notional_usd
    FROM token_transfer_payload AS t JOIN token_transfer_details AS details ON {same("t", "details", *_KEY)}
)
SELECT date, emitter_chain, target_chain, origin_chain, origin_address,
    max(symbol) AS symbol, count(*) AS transfers,
    {amount_sum("amount")} AS amount, {usd_sum("notional_usd")} AS notional_usd
FROM sent GROUP BY date, emitter_chain, target_chain, origin_chain, origin_address
"""

# Token accounts of one owner are one receiver where the owner is known.
_ADDRESSES_DAILY = f"""
SELECT t.date, target_chain, count(DISTINCT coalesce(receiver_address, target_address)) AS addresses
FROM token_transfer_payload AS t LEFT JOIN chain_details AS details ON {same("t", "details", *_KEY)}
GROUP BY t.date, target_chain
"""

# A transfer from big_transaction_usd on (null or 0: none) waits for a day and does not use up the limit, see
# whitepaper 0007 of wormhole-foundation/wormhole. That transfers back free some of it (flow cancel) is not
# counted.
_GOVERNOR_USAGE_DAILY = f"""
WITH counted AS (
    SELECT t.date, {_EMITTER_CHAIN.format("t")} AS emitter_chain, details.notional_usd
    FROM token_transfer_payload AS t
    SEMI JOIN {LISTED} AS listed ON {same("t", "listed", *_TOKEN)}
    JOIN token_transfer_details AS details ON {same("t", "details", *_KEY)}
    WHERE details.notional_usd IS NOT NULL
), judged AS (
    SELECT date, counted.emitter_chain, daily_limit_usd, big_transaction_usd, notional_usd,
        coalesce(big_transaction_usd > 0 AND notional_usd >= big_transaction_usd, false) AS is_big
    FROM counted JOIN {LIMITS} AS limits ON counted.emitter_chain = limits.emitter_chain
    WHERE date >= since AND (until IS NULL OR date < until)
)
SELECT date, emitter_chain, daily_limit_usd, big_transaction_usd,
    count_if(NOT is_big) AS transfers,
    {usd_sum("CASE WHEN is_big THEN 0 ELSE notional_usd END")} AS notional_usd,
    count_if(is_big) AS big_transfers,
    {usd_sum("CASE WHEN is_big THEN notional_usd ELSE 0 END")} AS big_notional_usd
FROM judged GROUP BY date, emitter_chain, daily_limit_usd, big_transaction_usd
"""


def _chain_details(chains: Mapping[int, RpcChain]) -> str:
    """Return the query of ``chain_details``, one row per token and NFT transfer.

    Documents and addresses name the receiver, and of a token that comes home the token there. Everything
    else (the sender, the owner of a Solana token account, the wrapped asset on the target chain) comes from
    answers, and is null where these hold nothing. For a sender the chain's RPC has precedence over the
    source's API.
    """
    mints = ", ".join(map(str, chains_with_mints(chains)))
    nft_mint = f"CASE WHEN target_chain IN ({mints}) THEN token_id END" if mints else "CAST(NULL AS STRING)"
    wrapped = "CAST(t.origin_chain AS STRING), t.origin_address"

    def answered(question: str, chain: str, subject: str) -> str:
        return (
            f"SELECT chain AS {chain}, subject AS {subject}, date, address FROM {ANSWERS} "
            f"WHERE question = '{question}'"
        )

    return f"""
WITH routes AS (
    SELECT t.date, t.row_key, t.origin_chain, t.target_chain, t.target_address,
        details.origin_symbol AS symbol, details.origin_name AS name, '{WRAPPED}' AS question,
        concat_ws(':', {wrapped}) AS asset, details.origin_token_address AS itself
    FROM token_transfer_payload AS t
    JOIN token_transfer_details AS details ON {same("t", "details", *_KEY)}
    UNION ALL
    SELECT t.date, t.row_key, t.origin_chain, t.target_chain, t.target_address, symbol, name, '{WRAPPED_NFT}',
        concat_ws(':', {wrapped}, {nft_mint}),
        native_token(t.origin_chain,
            CASE WHEN t.origin_address = '{_SPL_COLLECTION}' THEN uint256_word(token_id)
            ELSE t.origin_address END)
    FROM nft_transfer_payload AS t
), wrapped AS (
    SELECT chain AS target_chain, question, subject AS asset, address, symbol, name FROM {ANSWERS}
    WHERE question IN ('{WRAPPED}', '{WRAPPED_NFT}')
), owners AS ({answered(OWNER, "target_chain", "target_address")}),
senders AS ({answered(SENDER, "emitter_chain", "row_key")}),
reported AS ({answered(REPORTED, "emitter_chain", "row_key")})
SELECT routes.date, routes.row_key,
    coalesce(senders.address, reported.address) AS sender_address,
    coalesce(owners.address, native_account(routes.target_chain, routes.target_address))
        AS receiver_address,
    CASE WHEN routes.origin_chain = routes.target_chain THEN itself ELSE wrapped.address END
        AS resulting_token_address,
    CASE WHEN routes.origin_chain = routes.target_chain THEN routes.symbol ELSE wrapped.symbol END
        AS resulting_token_symbol,
    CASE WHEN routes.origin_chain = routes.target_chain THEN routes.name ELSE wrapped.name END
        AS resulting_token_name
FROM routes
LEFT JOIN senders ON {same("routes", "senders", *_KEY)}
LEFT JOIN reported ON {same("routes", "reported", *_KEY)}
LEFT JOIN owners ON {same("routes", "owners", "target_chain", "target_address")}
LEFT JOIN wrapped ON {same("routes", "wrapped", "target_chain", "question", "asset")}
"""
