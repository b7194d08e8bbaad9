"""Contracts of the tables about applications: whose messages they are, and what these move."""

from __future__ import annotations

from permalake.contracts.schema import AMOUNT, ROW_KEY, UINT, Column
from permalake.wormhole.contracts.columns import chain, daily, per_vaa, text, usd, word
from permalake.wormhole.contracts.value_reasons import NO_AMOUNT, NO_TOKEN, reason_column

_APP_ID = Column("app_id", "string", "Application as Wormholescan names it; UNKNOWN where none is known.")


def _uint(name: str, doc: str) -> Column:
    return Column(name, "string", doc, required=False, pattern=UINT)


APPLICATION_MESSAGES = per_vaa(
    "application_messages",
    "The application that a VAA belongs to. Contracts by chain and address: `applications.json` and "
    "`bridges.json` of the "
    "reference data; layouts: the documents and contracts that `wormhole.codec.applications` names.",
    _APP_ID,
    text(
        "carrier_app_id",
        "Application whose message carries this one: PORTAL_TOKEN_BRIDGE of a transfer with payload for the "
        "application's contract, GENERIC_RELAYER of a message inside a delivery.",
    ),
    Column(
        "kind",
        "string",
        "What the message is, such as transfer, delivery, unlock; governance and query_response have no "
        "application; unknown where nothing matches.",
    ),
    text("layout", "Layout by which it was decoded; null without an application."),
    Column(
        "is_listed",
        "int",
        "1: the contract that speaks for the application is in the reference data; 0: its form alone tells "
        "the "
        "application (NTT), so anybody can have sent it, or it has none.",
        values=(0, 1),
    ),
    text(
        "fields",
        "Fields of the application's message, as a JSON object; null where the bridges' own tables have "
        "them.",
    ),
)

APPLICATION_TRANSFERS = per_vaa(
    "application_transfers",
    "What messages of applications move: NTT, CCTP, tBTC gateway, Portico, Connect, Mayan; at most one row "
    "per "
    "VAA. Null is what the message does not tell.",
    _APP_ID,
    chain("token_chain", "Chain of the token", required=False),
    word("token_address", "The token there; of Mayan Swift the one that is paid out", required=False),
    _uint("amount", "Raw amount; of Mayan Swift the one promised."),
    Column(
        "amount_decimals",
        "int",
        "Decimals of `amount` where the message states them; null: the token's own, at most 8.",
        required=False,
        minimum=0,
        maximum=255,
    ),
    word("sender_address", "Sender", required=False),
    word("recipient_address", "Recipient, read from the application's payload"),
    chain(
        "target_chain",
        "Chain of the recipient; of a transfer through Gateway the one behind Wormchain",
        required=False,
    ),
    _uint("fee", "Relayer's fee, raw, in units of the token."),
    Column(
        "in_token_transfers",
        "int",
        "1: the token bridge moves this amount, so the row of the same key in `token_transfer_payload` "
        "counts "
        "it; 0: it counts here.",
        values=(0, 1),
    ),
)

RELAYER_DELIVERIES = per_vaa(
    "relayer_deliveries",
    "Deliveries that the generic relayer is asked for (wormhole-foundation/wormhole, "
    "`relayer/ethereum/contracts/relayer/wormholeRelayer/WormholeRelayerSerde.sol`).",
    Column("kind", "string", "delivery, or redelivery of an earlier one.", values=("delivery", "redelivery")),
    chain("target_chain", "Chain of the delivery"),
    word("target_address", "Contract that is called; null in a redelivery", required=False),
    word("sender_address", "Contract that asked"),
    Column("requested_receiver_value", "string", "Native units that the contract receives.", pattern=UINT),
    _uint("extra_receiver_value", "Native units on top, paid by the sender; null in a redelivery."),
    _uint("gas_limit", "Gas limit; null where the target is no EVM chain."),
    _uint(
        "refund_per_gas_unused", "Native units refunded per unit of gas left; null where there is no limit."
    ),
    chain("refund_chain", "Chain of the refund; null in a redelivery", required=False),
    word("refund_address", "Receiver of the refund; null in a redelivery", required=False),
    word(
        "refund_delivery_provider", "Provider that delivers the refund; null in a redelivery", required=False
    ),
    word("source_delivery_provider", "Provider that is paid to deliver"),
    Column("message_count", "int", "Messages to deliver along.", minimum=0, maximum=255),
    Column(
        "delivered_row_key",
        "string",
        "Delivery that is repeated; null unless a redelivery names a VAA.",
        required=False,
        pattern=ROW_KEY,
    ),
)

APPLICATION_TRANSFER_DETAILS = per_vaa(
    "application_transfer_details",
    "Amount and value of what a message of an application moves; of transfers that the token bridge "
    "counts, the values "
    "of `token_transfer_details`.",
    Column(
        "amount",
        "string",
        "Raw amount / 10^decimals, exact; null when decimals are unknown, or more than 8 are stated.",
        required=False,
        pattern=AMOUNT,
    ),
    usd("notional_usd", "amount x token_price_usd", minimum=0),
    Column("token_price_usd", "decimal(38,18)", "Quote nearest in time (USD).", required=False, minimum=0),
    Column("price_timestamp", "timestamptz", "Time of the quote.", required=False),
    text("price_source", "Provider of the quote."),
    Column(
        "price_distance_seconds",
        "long",
        "Whole seconds between quote and VAA; null without a quote.",
        required=False,
        minimum=0,
    ),
    text("token_symbol", "Symbol of the token."),
    text("token_name", "Name of the token."),
    text("token_native_address", "The token's address in its chain's native form."),
    text("recipient_native_address", "Recipient in the native form of the target chain."),
    reason_column(NO_TOKEN, NO_AMOUNT),
    lookups=("recipient_native_address",),
)

APPLICATIONS_DAILY = daily(
    "applications_daily",
    "Messages and transfers per day, application and emitter chain: each message counts for one "
    "application, so rows may be "
    "summed.",
    _APP_ID,
    chain("emitter_chain", "Chain of the emitters"),
    Column("messages", "long", "VAAs published.", minimum=1),
    Column("transfers", "long", "Token transfers among them.", minimum=0),
    usd("notional_usd", "Sum of notional values of transfers whose contract is listed", minimum=0),
    key=("app_id", "emitter_chain"),
)

TABLES = (
    APPLICATION_MESSAGES,
    APPLICATION_TRANSFERS,
    RELAYER_DELIVERIES,
    APPLICATION_TRANSFER_DETAILS,
    APPLICATIONS_DAILY,
)
