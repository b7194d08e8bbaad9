"""Views in analysts' words: chains by name, amounts as numbers, and why a transfer has no price."""

from __future__ import annotations

import json

from permalake.contracts.schema import DATE, Column
from permalake.contracts.views import LakeView
from permalake.paths import REFERENCE
from permalake.wormhole.contracts.chain_pages import COINS, EXPLORERS
from permalake.wormhole.contracts.columns import NOTIONAL_SUM, SUMMED, TOTAL
from permalake.wormhole.contracts.value_reasons import meaning_sql, reason_column

_CHAINS = json.loads((REFERENCE / "chains.json").read_text("utf-8"))
CHAIN_NAMES = frozenset(chain["name"] for chain in _CHAINS.values())
"""Names of chains, as tables and pages have them."""
_NAMES = (
    f"map([{', '.join(_CHAINS)}], [" + ", ".join(f"'{chain['name']}'" for chain in _CHAINS.values()) + "])"
)


def chain_in_words(number: str) -> str:
    """Return SQL for a chain's name with its id; ``number``: SQL for the id."""
    return f"coalesce({_NAMES}[CAST({number} AS INT)] || ' (' || {number} || ')', 'chain ' || {number})"


def _listed(value: str | None) -> str:
    return "CAST(NULL AS VARCHAR)" if value is None else f"'{value}'"


def _chain_rows() -> str:
    rows = (
        f"({number}, {_listed(chain['name'])}, {_listed(chain.get('family'))}, "
        f"{_listed(COINS.get(int(number)))}, {_listed(EXPLORERS.get(int(number)))})"
        for number, chain in _CHAINS.items()
    )
    return f"SELECT * FROM (VALUES {', '.join(rows)}) AS listed(id, name, family, native_coin, explorer)"  # noqa: S608


def chain_columns(name: str, doc: str) -> tuple[Column, Column]:
    """Return the columns of a chain, by id and by name."""
    return (
        Column(name, "int", f"{doc} (Wormhole chain id)."),
        Column(f"{name}_name", "string", f"{doc}, by name; null where `chains` lacks it.", required=False),
    )


def with_names(*columns: str) -> str:
    """Return SQL for columns of chains, each with the chain's name behind it."""
    return ", ".join(f"{column}, {_NAMES}[{column}] AS {column}_name" for column in columns)


def _text(name: str, doc: str) -> Column:
    return Column(name, "string", doc, required=False)


_ROUTE = ("emitter_chain", "target_chain", "origin_chain")
_ROUTE_COLUMNS = (
    *chain_columns("emitter_chain", "Chain that sent"),
    *chain_columns("target_chain", "Chain that received"),
    *chain_columns("origin_chain", "The token's own chain"),
    Column("origin_address", "string", "The token on its own chain (32 bytes, hex)."),
    _text("symbol", "Symbol of the token, for reading only."),
)
_TRANSFERS = (
    "SELECT sent.date AS date, sent.row_key AS row_key, timestamp, "
    "initiating_tx_id AS transaction_id, emitter_chain, target_chain, "
    "origin_chain, origin_address, origin_symbol AS symbol, origin_name AS token_name, "
    "details.amount AS amount_text, notional_usd, token_price_usd, price_timestamp, price_source, reason, "
    "stand_in, stand_in_price_usd, stand_in_notional_usd, "
    "sender_address, receiver_address FROM {network}.token_transfer_payload AS sent "
    "JOIN {network}.message_publication AS published "
    "ON published.date = sent.date AND published.row_key = sent.row_key "
    "LEFT JOIN {network}.token_transfer_details AS details "
    "ON details.date = sent.date AND details.row_key = sent.row_key "
    "LEFT JOIN {network}.chain_details AS parties "
    "ON parties.date = sent.date AND parties.row_key = sent.row_key "
    "WHERE sent.date <= CAST(as_of AS DATE)"
)
_TABLES = ("message_publication", "token_transfer_payload", "token_transfer_details", "chain_details")

CHAINS = LakeView(
    "chains",
    "wormhole",
    "Chains by Wormhole chain id, from the bundled reference data.",
    (
        Column("id", "int", "Wormhole chain id."),
        Column("name", "string", "Name in lower case."),
        _text("family", "Form of its addresses and RPC, such as evm."),
        _text("native_coin", "Ticker of the coin that pays its fees; null where the list lacks it."),
        _text("explorer", "Address of an explorer of the chain; null where the list lacks it."),
    ),
    (),
    _chain_rows(),
    note="No day: chains of `[wormhole] reference` are not among them.",
)
PRICED_TRANSFERS = LakeView(
    "priced_transfers",
    "wormhole",
    "Token transfers with names of chains and tokens, parties, value, and the reason where there is none.",
    (
        DATE,
        Column("row_key", "string", "EmitterChain:EmitterAddress:Sequence (v2 key)."),
        Column("timestamp", "timestamptz", "Time in the VAA's body."),
        _text("transaction_id", "Transaction that emitted it; null where it is not known."),
        *_ROUTE_COLUMNS,
        _text("token_name", "Name of the token, for reading only."),
        Column(
            "amount",
            "decimal(38,8)",
            "Amount in units of the token; null where decimals are unknown, and beyond this type.",
            required=False,
        ),
        _text("amount_text", "The same as text, exact at any size; null where decimals are unknown."),
        Column("notional_usd", "decimal(38,8)", "Value (USD); null where there is none.", required=False),
        Column("token_price_usd", "decimal(38,18)", "Quote nearest in time (USD).", required=False),
        Column("price_timestamp", "timestamptz", "Time of the quote.", required=False),
        _text("price_source", "Provider of the quote."),
        reason_column(),
        _text("reason_text", "The same in words."),
        _text("stand_in", "Without a quote: usd for a stablecoin, or the CoinGecko id of the wrapped asset."),
        Column("stand_in_price_usd", "decimal(38,18)", "Its price (USD); null with a quote.", required=False),
        Column(
            "stand_in_notional_usd",
            "decimal(38,8)",
            "Value by it (USD), never part of any sum; null with a quote.",
            required=False,
        ),
        _text("sender_address", "Sender of the transaction, where it is known."),
        _text("receiver_address", "Receiver in the target chain's native form, where 32 bytes determine it."),
    ),
    _TABLES,
    f"SELECT date, row_key, timestamp, transaction_id, {with_names(*_ROUTE)}, origin_address, symbol, "  # noqa: S608
    "token_name, TRY_CAST(amount_text AS DECIMAL(38,8)) AS amount, amount_text, notional_usd, "
    "token_price_usd, price_timestamp, price_source, reason, "
    f"{meaning_sql('reason')} AS reason_text, stand_in, stand_in_price_usd, "
    f"stand_in_notional_usd, sender_address, receiver_address FROM ({_TRANSFERS})",
    note="A sum of notional_usd leaves out what has no price: count(notional_usd) tells how many have one.",
    key=("row_key",),
)
TOKEN_VOLUMES = LakeView(
    "token_volumes_daily",
    "wormhole",
    "Token transfers per day, route and token: names, amount as a number, and how many have a value.",
    (
        DATE,
        *_ROUTE_COLUMNS,
        Column("transfers", "long", "Number of transfers."),
        Column("valued", "long", "Those with a value: notional_usd is the sum of these."),
        Column(
            "amount",
            "decimal(38,8)",
            "Sum of amounts in units of the token; null when one is not known, and where one or the sum is "
            "beyond this type.",
            required=False,
        ),
        NOTIONAL_SUM,
    ),
    _TABLES,
    f"SELECT date, {with_names(*_ROUTE)}, origin_address, symbol, transfers, valued, "  # noqa: S608
    f"CASE WHEN summed = transfers THEN amount END AS amount, {TOTAL} FROM ("
    "SELECT date, emitter_chain, target_chain, origin_chain, origin_address, max(symbol) AS symbol, "
    "count(*) AS transfers, count(notional_usd) AS valued, "
    "sum(TRY_CAST(amount_text AS DECIMAL(30,8))) AS amount, "
    f"count(TRY_CAST(amount_text AS DECIMAL(30,8))) AS summed, {SUMMED} FROM ({_TRANSFERS}) "
    "GROUP BY date, emitter_chain, target_chain, origin_chain, origin_address)",
    key=(*_ROUTE, "origin_address"),
)
VIEWS = (CHAINS, PRICED_TRANSFERS, TOKEN_VOLUMES)
