"""Contracts of the Wormhole tables (lake namespace ``wormhole``)."""

from __future__ import annotations

from permalake.contracts.schema import AMOUNT, HEX, UINT, Column, Table
from permalake.wormhole.contracts.columns import chain as _chain
from permalake.wormhole.contracts.columns import daily as _daily
from permalake.wormhole.contracts.columns import per_vaa as _per_vaa
from permalake.wormhole.contracts.columns import row_key as _row_key
from permalake.wormhole.contracts.columns import text as _text
from permalake.wormhole.contracts.columns import usd as _usd
from permalake.wormhole.contracts.columns import word as _word
from permalake.wormhole.contracts.value_reasons import reason_column

NAMESPACE = "wormhole"

MESSAGE_PUBLICATION = _per_vaa(
    "message_publication",
    "Verified VAAs: header and body.",
    Column("version", "int", "Version of the VAA.", values=(1,)),
    Column("guardian_set_index", "long", "Guardian set that signed.", minimum=0),
    Column("timestamp", "timestamptz", "Time in the VAA's body."),
    Column("nonce", "long", "Nonce of the user's transaction (u32).", minimum=0, maximum=2**32 - 1),
    Column("sequence", "decimal(20,0)", "Sequence of the emitter (u64).", minimum=0, maximum=2**64 - 1),
    _chain("emitter_chain", "Chain of the emitter"),
    _word("emitter_address", "Address of the emitter"),
    _text("initiating_tx_id", "Transaction that emitted the message, as reported (0x-hex on EVM)."),
    Column("payload", "binary", "Payload of the message."),
    _word("digest", "keccak256(keccak256(body))"),
    lookups=("row_key", "initiating_tx_id", "emitter_address"),
    copied=("row_key", "date", "timestamp"),
)

QUORUM_STATE = _per_vaa(
    "quorum_state",
    "The signed VAA itself.",
    Column("signed_vaa", "binary", "Raw bytes of the VAA."),
    copied=("row_key", "signed_vaa", "date"),
)

OBSERVATIONS = _per_vaa(
    "observations",
    "Which guardians were observed to sign a message, and when, where observations are known.",
    Column("guardian_address", "string", "The guardian (20 bytes, hex).", pattern=r"^[0-9a-f]{40}$"),
    Column("signature", "string", "Its signature (65 bytes, hex).", pattern=HEX),
    Column("observed_at", "timestamptz", "When it was first seen."),
    Column(
        "in_vaa",
        "int",
        "1: the published VAA has this guardian's signature; 0: it does not. Null: built before this column.",
        required=False,
        values=(0, 1),
    ),
    key=("row_key", "guardian_address"),
)

TOKEN_TRANSFER_PAYLOAD = _per_vaa(
    "token_transfer_payload",
    "Token-bridge transfers (payloads 1 and 3).",
    Column("payload_id", "int", "1 transfer, 3 transfer with payload.", values=(1, 3)),
    Column("amount", "string", "Raw uint256 (decimals cut to 8 by the bridge).", pattern=UINT),
    _word("origin_address", "The token on its own chain"),
    _chain("origin_chain", "The token's own chain"),
    _word("target_address", "Receiver"),
    _chain("target_chain", "Chain of the receiver"),
    Column("fee", "string", "Relayer fee, raw uint256 (payload 1).", required=False, pattern=UINT),
    _word("from_address", "Sender contract (payload 3)", required=False),
    Column("app_payload", "binary", "Payload for the receiving contract (payload 3).", required=False),
)

ASSET_META_PAYLOAD = _per_vaa(
    "asset_meta_payload",
    "Token attestations (payload 2).",
    Column("payload_id", "int", "2.", values=(2,)),
    _word("token_address", "The token on its own chain"),
    _chain("token_chain", "The token's own chain"),
    Column("decimals", "int", "Decimals on its own chain.", minimum=0, maximum=255),
    Column("symbol", "string", "Symbol, NUL padding removed."),
    Column("name", "string", "Name, NUL padding removed."),
    lookups=("token_address",),
)

NFT_TRANSFER_PAYLOAD = _per_vaa(
    "nft_transfer_payload",
    "NFT-bridge transfers.",
    Column("payload_id", "int", "1.", values=(1,)),
    _word("origin_address", "The collection on its own chain"),
    _chain("origin_chain", "The collection's own chain"),
    Column("symbol", "string", "Symbol, NUL padding removed."),
    Column("name", "string", "Name, NUL padding removed."),
    Column("token_id", "string", "Token id (uint256).", pattern=UINT),
    Column("uri", "string", "URI of the token."),
    _word("target_address", "Receiver"),
    _chain("target_chain", "Chain of the receiver"),
)

GOVERNANCE_ACTIONS = _per_vaa(
    "governance_actions",
    "Instructions of the guardians: messages of the governance emitter, decoded.",
    Column("module", "string", "Contract that it is for, such as Core or TokenBridge."),
    Column("action", "int", "Number of the action within its module.", minimum=0, maximum=255),
    _text("action_name", "Name of the action; null where it is not known."),
    _chain("target_chain", "Chain that it is for, 0 for all"),
    _text(
        "fields",
        "Other fields of the message, as a JSON object; null where its layout is unknown or does not fit.",
    ),
)

ATTESTED_TOKENS = _daily(
    "attested_tokens",
    "The latest attestation of every token at the day's end, from the bridge of its own chain.",
    _chain("origin_chain", "The token's own chain"),
    _word("origin_address", "The token on its own chain"),
    Column("decimals", "int", "Decimals on its own chain.", minimum=0, maximum=255),
    Column("symbol", "string", "Symbol, NUL padding removed."),
    Column("name", "string", "Name, NUL padding removed."),
    Column("attested_on", "date", "Day of the attestation."),
    _row_key(),
    key=("origin_chain", "origin_address"),
    commit="carried",
)

TOKEN_TRANSFER_DETAILS = _per_vaa(
    "token_transfer_details",
    "Amount and value of a token transfer.",
    Column(
        "amount",
        "string",
        "raw / 10^min(decimals, 8), exact; null when decimals are unknown.",
        required=False,
        pattern=AMOUNT,
    ),
    _usd("notional_usd", "amount x token_price_usd", minimum=0),
    Column("token_price_usd", "decimal(38,18)", "Quote nearest in time (USD).", required=False, minimum=0),
    Column("price_timestamp", "timestamptz", "Time of the quote.", required=False),
    _text("price_source", "Provider of the quote."),
    Column(
        "price_distance_seconds",
        "long",
        "Time between the quote and the VAA, whole seconds.",
        required=False,
        minimum=0,
    ),
    Column(
        "check_price_usd",
        "decimal(38,18)",
        "Quote of the provider that cross-checks (USD).",
        required=False,
        minimum=0,
    ),
    Column("check_price_timestamp", "timestamptz", "Time of that quote.", required=False),
    _text("check_price_source", "That provider."),
    _text(
        "stand_in",
        "Without a quote: usd for a stablecoin, or the CoinGecko id of the asset that the token wraps.",
    ),
    Column(
        "stand_in_price_usd",
        "decimal(38,18)",
        "A dollar, or the quote of that asset nearest in time (USD).",
        required=False,
        minimum=0,
    ),
    Column("stand_in_timestamp", "timestamptz", "Time of that quote; null for a dollar.", required=False),
    _usd("stand_in_notional_usd", "amount x stand_in_price_usd, never part of any sum", minimum=0),
    _text("origin_symbol", "Symbol of the token."),
    _text("origin_name", "Name of the token."),
    _text(
        "origin_token_address",
        "The token's address in its chain's native form; null where its 32 bytes are a hash that no list "
        "resolves (NEAR, Aptos, Cosmos).",
    ),
    reason_column(),
    Column(
        "price_confidence",
        "double",
        "What the provider itself says of its quote, 0 to 1; null where it says nothing.",
        required=False,
        minimum=0,
        maximum=1,
    ),
    Column(
        "unused_price_usd",
        "decimal(38,18)",
        "Quote nearest in time where it does not count (USD); `reason` says why.",
        required=False,
        minimum=0,
    ),
    Column(
        "contradicting_price_usd",
        "decimal(38,18)",
        "Price that the quote differs from by more than prices.max_factor (USD): that of the token's quotes "
        "before and after it, or of the cross-check. Null where there is none.",
        required=False,
        minimum=0,
    ),
)

CHAIN_DETAILS = _per_vaa(
    "chain_details",
    "Chain-native facts of a token or NFT transfer.",
    _text("sender_address", "Sender of the transaction."),
    _text(
        "receiver_address",
        "Receiver in the target chain's native form; null where 32 bytes do not determine it: hashed names "
        "(Stacks; NEAR, where no list has the name), and Stellar, TON, Bitcoin and Dogecoin, which need its "
        "kind, too.",
    ),
    _text("resulting_token_address", "The token on the target chain."),
    _text("resulting_token_symbol", "Its symbol."),
    _text("resulting_token_name", "Its name."),
    lookups=("sender_address", "receiver_address"),
)

TOKEN_PRICES = Table(
    "token_prices",
    "wormhole",
    "Every quote ever fetched or used: the cache of later runs.",
    (
        _chain("origin_chain", "The token's own chain"),
        _word("origin_address", "The token on its own chain"),
        Column("provider", "string", "Provider of the quote."),
        Column("quote_time", "timestamptz", "Time of the quote."),
        Column("price_usd", "decimal(38,18)", "Price (USD).", minimum=0),
        Column("fetched_at", "timestamptz", "When it was first fetched."),
        Column(
            "confidence",
            "double",
            "What the provider itself says of it, 0 to 1; null where it says nothing.",
            required=False,
            minimum=0,
            maximum=1,
        ),
        Column(
            "former_price_usd",
            "decimal(38,18)",
            "Price before its last correction; null where it was never corrected.",
            required=False,
        ),
        Column("corrected_at", "timestamptz", "When it was last corrected.", required=False),
        _text(
            "coin",
            "The provider's name of the coin that was requested, by the token list; null where the token was "
            "requested by its address, of files and copied days, and before this column.",
        ),
    ),
    key=("origin_chain", "origin_address", "provider", "quote_time"),
    sort=("origin_chain", "origin_address", "quote_time"),
    first_value=("fetched_at", "corrected_at"),
    commit="side",
    date_doc="UTC date of the quote.",
)

CHAIN_ANSWERS = Table(
    "chain_answers",
    "wormhole",
    "Answers of the chains' RPCs and of the source's API, each asked once: the cache of later runs.",
    (
        _chain("chain", "Chain that the question is about"),
        Column(
            "question",
            "string",
            "sender of a message, its reported_sender, owner of a token account, wrapped asset, wrapped_nft, "
            "token, native name of a token whose address is a hash.",
            values=("sender", "reported_sender", "owner", "wrapped", "wrapped_nft", "token", "native"),
        ),
        Column(
            "subject",
            "string",
            "Row key (senders), account (owner), token's own chain:address (wrapped; of a wrapped_nft on "
            "Solana with its token id), address (token, native).",
        ),
        Column("told", "int", "1: an answer; 0: none, for a reason.", values=(0, 1)),
        _text("address", "The sender, owner, wrapped asset or token in native form."),
        _text("symbol", "Symbol of the wrapped asset or token."),
        _text("name", "Its name."),
        Column("decimals", "int", "Its decimals.", required=False, minimum=0, maximum=255),
        _text("reason", "Why there is no answer; null where there is one."),
        Column("asked_at", "timestamptz", "Time of the first answer."),
    ),
    key=("chain", "question", "subject", "told", "date"),
    sort=("chain", "question", "subject"),
    first_value=("asked_at",),
    commit="side",
    date_doc="Day that needed it; 1969-12-31 for owners, assets and tokens that a finalized block proves, an "
    "earlier day for those that were corrected.",
)

NOTIONAL_TRANSFERRED_DAILY = _daily(
    "notional_transferred_daily",
    "Token transfers per day, route and token.",
    _chain("emitter_chain", "Chain that sent"),
    _chain("target_chain", "Chain that received"),
    _text("symbol", "Symbol of the token, for reading only."),
    _chain("origin_chain", "The token's own chain"),
    _word("origin_address", "The token on its own chain"),
    Column("transfers", "long", "Number of transfers.", minimum=1),
    Column("amount", "string", "Sum of amounts; null when none is known.", required=False, pattern=AMOUNT),
    _usd("notional_usd", "Sum of notional values", minimum=0),
    key=("emitter_chain", "target_chain", "origin_chain", "origin_address"),
)

ADDRESSES_DAILY = _daily(
    "addresses_daily",
    "Distinct receivers of token transfers per day and target chain.",
    _chain("target_chain", "Chain of the receivers"),
    Column("addresses", "long", "Distinct receivers.", minimum=1),
    key=("target_chain",),
)

GOVERNOR_USAGE_DAILY = _daily(
    "governor_usage_daily",
    "What each chain sent of listed tokens in a day, beside the limits of the guardians' governor.",
    _chain("emitter_chain", "Chain that sent"),
    Column("daily_limit_usd", "long", "Value that it may send in 24 hours (USD).", minimum=0),
    Column(
        "big_transaction_usd",
        "long",
        "Value from which a transfer waits for a day (USD); null or 0: none.",
        required=False,
        minimum=0,
    ),
    Column("transfers", "long", "Transfers with a value below that.", minimum=0),
    _usd("notional_usd", "Their value, which uses up the limit", minimum=0),
    Column("big_transfers", "long", "Transfers of at least that value.", minimum=0),
    _usd("big_notional_usd", "Their value, which does not", minimum=0),
    key=("emitter_chain",),
)

MESSAGES_DAILY = _daily(
    "messages_daily",
    "VAAs per day and emitter chain.",
    _chain("emitter_chain", "Chain of the emitters"),
    Column("messages", "long", "verified + quarantined.", minimum=1),
    Column("verified", "long", "VAAs published.", minimum=0),
    Column("quarantined", "long", "VAAs in quarantine.", minimum=0),
    key=("emitter_chain",),
)

TVL_DAILY = _daily(
    "tvl_daily",
    "Value locked in the bridges: cumulative, sent out of the token's own chain less sent back.",
    _chain("origin_chain", "The token's own chain"),
    _word("origin_address", "The token on its own chain"),
    Column(
        "amount", "string", "Amount locked.", required=False, pattern=r"^-?(0|[1-9][0-9]*)([.][0-9]*[1-9])?$"
    ),
    _usd("notional_usd", "amount x the quote nearest to the day's end"),
    key=("origin_chain", "origin_address"),
    commit="carried",
)

TABLES = (
    MESSAGE_PUBLICATION,
    QUORUM_STATE,
    OBSERVATIONS,
    TOKEN_TRANSFER_PAYLOAD,
    ASSET_META_PAYLOAD,
    NFT_TRANSFER_PAYLOAD,
    GOVERNANCE_ACTIONS,
    ATTESTED_TOKENS,
    TOKEN_TRANSFER_DETAILS,
    CHAIN_DETAILS,
    TOKEN_PRICES,
    CHAIN_ANSWERS,
    NOTIONAL_TRANSFERRED_DAILY,
    ADDRESSES_DAILY,
    GOVERNOR_USAGE_DAILY,
    MESSAGES_DAILY,
    TVL_DAILY,
)
