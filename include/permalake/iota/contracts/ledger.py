"""Contracts of the IOTA tables (one lake namespace per network)."""

from __future__ import annotations

from permalake.contracts.schema import DATE, HEX, HEX32, OUTPUT_ID, Column, Table
from permalake.iota.contracts.columns import (
    MAX_U32,
    address,
    amount,
    count,
    inclusion,
    message,
    milestone,
    milestone_time,
    range_id,
    u32,
    u256,
)


def _outputs(
    name: str, doc: str, *kind_columns: Column, output_id: str = OUTPUT_ID, lookups: tuple[str, ...] = ()
) -> Table:
    return Table(
        name=name,
        group="iota",
        doc=doc,
        body=(
            Column("output_id", "string", "transaction_id || u16 LE index.", pattern=output_id),
            range_id(),
            milestone("Milestone that created the output."),
            milestone_time(),
            inclusion("1: only included transactions and receipts create outputs.", values=(1,)),
            amount("amount", "Amount of the output"),
            *kind_columns,
            Column("data", "binary", "Raw bytes of the output."),
        ),
        key=("output_id",),
        sort=("milestone_index", "output_id"),
        time_column="ms_timestamp",
        lookups=("output_id", *lookups),
    )


MILESTONES = Table(
    "milestones",
    "iota",
    "Milestones: the coordinator's signed checkpoints.",
    (
        milestone("Index of the milestone."),
        message(
            required=False,
            doc="Id of the message that carries the milestone, where it is referenced within the same day.",
        ),
        Column("timestamp", "long", "Time of the milestone (unix seconds).", minimum=0, maximum=MAX_U32),
        Column("payload", "binary", "Raw milestone payload with its 4-byte type."),
        Column(
            "milestone_id",
            "string",
            "Id of the milestone: BLAKE2b-256 of the whole payload (Chrysalis, TIP-8) or of its essence "
            "(Stardust, TIP-29).",
            pattern=HEX32,
        ),
    ),
    key=("milestone_index",),
    sort=("milestone_index",),
    time_column="timestamp",
    lookups=("payload",),
    lookup_keys={"payload": "permalake.iota.codec.milestones:milestone_id"},
    copied=("milestone_index", "message_id", "timestamp", "payload"),
)

MESSAGES = Table(
    "messages",
    "iota",
    "Every message (block) that the milestone references, in white-flag order.",
    (
        message(),
        Column("version", "int", "1 on Chrysalis, the block's protocol version on Stardust.", values=(1, 2)),
        Column("message", "binary", "Raw bytes of the message."),
        milestone(),
        count("white_flag_index", "Position in the milestone's white-flag order (post-order DFS)."),
        inclusion(),
        Column("conflict_reason", "int", "The protocol's own code, 0 when none.", minimum=0, maximum=255),
        Column("proof", "binary", "Proof of inclusion, null until proofs are built.", required=False),
    ),
    key=("message_id",),
    sort=("milestone_index", "white_flag_index"),
    lookups=("message_id",),
    copied=(
        "message_id",
        "message",
        "milestone_index",
        "white_flag_index",
        "inclusion_state",
        "conflict_reason",
    ),
)

PARENTS = Table(
    "parents",
    "iota",
    "One row per distinct (parent, message).",
    (
        Column("parent_id", "string", "Id of the approved message.", pattern=HEX32),
        message(),
        milestone(),
        inclusion(),
    ),
    key=("parent_id", "message_id"),
    sort=("milestone_index", "parent_id"),
    lookups=("parent_id",),
)

TAGS = Table(
    "tags",
    "iota",
    "Indexation keys (Chrysalis) and tags (Stardust), at top level or inside a transaction.",
    (
        Column("tag", "string", "Hex of the tag's bytes; an empty tag makes no row.", pattern=HEX),
        range_id(),
        milestone(),
        milestone_time(),
        message(),
        inclusion(),
    ),
    key=("tag", "message_id"),
    sort=("milestone_index", "tag"),
    time_column="ms_timestamp",
    lookups=("tag",),
)

TRANSACTIONS = Table(
    "transactions",
    "iota",
    "Inputs, outputs and unlocks of every transaction, one row each, conflicting ones too.",
    (
        Column("transaction_id", "string", "BLAKE2b-256 of the transaction payload.", pattern=HEX32),
        Column("idx", "int", "Position within its own list.", minimum=0, maximum=65535),
        Column("variant", "string", "Which list.", values=("input", "output", "unlock")),
        message(),
        Column("data", "binary", "Raw bytes of that input, output or unlock."),
        inclusion("0 conflicting, 1 included.", values=(0, 1)),
        milestone(),
    ),
    key=("transaction_id", "variant", "idx", "message_id"),
    sort=("milestone_index", "transaction_id", "variant", "idx"),
    lookups=("transaction_id",),
)

_OWNER = address("address", "Address unlock condition")
_SENDER = address("sender", "Sender feature")
_ISSUER = address("issuer", "Issuer feature")
_TAG = Column("tag", "string", "Hex of the tag feature.", required=False, pattern=HEX)
_CREATOR = "Message of the creating transaction"
_NATIVE_TOKENS = Column(
    "native_token_count",
    "int",
    "Distinct native tokens that the output holds (TIP-18).",
    minimum=0,
    maximum=64,
)


def _time(name: str, doc: str) -> Column:
    return Column(name, "long", f"{doc} (unix seconds).", required=False, minimum=1, maximum=MAX_U32)


def _conditions(return_address: str) -> tuple[Column, ...]:
    """Return the conditions that basic and NFT outputs may have, null where an output has none (TIP-18)."""
    return (
        _time("timelock_time", "Timelock unlock condition (TIP-18): the output cannot be spent before"),
        _time(
            "expiration_time",
            "Expiration unlock condition (TIP-18): then its return address owns the output",
        ),
        address(
            "expiration_return_address",
            "Expiration unlock condition (TIP-18): owner of the output once it has expired",
        ),
        address(
            return_address,
            "Storage deposit return unlock condition (TIP-18): who gets the deposit back",
        ),
        Column(
            "storage_return_amount",
            "long",
            "Storage deposit return unlock condition (TIP-18): what is to give back (base tokens).",
            required=False,
            minimum=1,
        ),
        _NATIVE_TOKENS,
    )


def _chain_id(name: str, doc: str, pattern: str = HEX32) -> Column:
    return Column(name, "string", doc, pattern=pattern)


def _metadata(name: str, doc: str) -> Column:
    return Column(name, "binary", f"{doc} (TIP-18), null where there is none.", required=False)


def _text(name: str, doc: str) -> Column:
    return Column(
        name, "string", f"{doc}; null where the immutable metadata does not have it.", required=False
    )


_METADATA = _metadata("metadata", "Metadata feature")
_IMMUTABLE = _metadata("immutable_metadata", "Immutable metadata feature")

BASIC_OUTPUTS = _outputs(
    "basic_outputs",
    "Basic outputs created, those of receipts too.",
    message(required=False, doc=f"{_CREATOR}; null for a receipt's output."),
    _OWNER,
    _SENDER,
    _TAG,
    *_conditions("storage_return_address"),
    lookups=("address", "expiration_return_address", "storage_return_address"),
)
ALIAS_OUTPUTS = _outputs(
    "alias_outputs",
    "Alias outputs created, every state of every alias.",
    message(doc=f"{_CREATOR}."),
    _chain_id("alias_id", "Alias id; of a new alias BLAKE2b-256(output id)."),
    _SENDER,
    _ISSUER,
    address("state_controller", "State controller"),
    address("governor", "Governor"),
    u32("state_index", "Number of state transitions that led to this state (TIP-18)."),
    u32("foundry_counter", "Number of foundries that the alias has created so far (TIP-18)."),
    _NATIVE_TOKENS,
    _metadata("state_metadata", "Metadata that the state controller may change"),
    _METADATA,
    _IMMUTABLE,
    lookups=("alias_id", "state_controller", "governor"),
)
FOUNDRY_OUTPUTS = _outputs(
    "foundry_outputs",
    "Foundry outputs created.",
    message(doc=f"{_CREATOR}."),
    _chain_id("foundry_id", "Alias address || serial number u32 LE || token scheme type.", r"^[0-9a-f]{76}$"),
    address("address", "Immutable alias address"),
    u32("serial_number", "Number of the foundry among those of its alias (TIP-18)."),
    _NATIVE_TOKENS,
    u256("minted_tokens", "Tokens that the foundry has minted so far (TIP-18)"),
    u256("melted_tokens", "Tokens that it has melted so far (TIP-18)"),
    u256("maximum_supply", "Most tokens that may circulate (TIP-18)"),
    u256("newly_minted", "Tokens that the creating transaction minted (TIP-18)"),
    u256("newly_melted", "Tokens that the creating transaction melted (TIP-18)"),
    _METADATA,
    _IMMUTABLE,
    _text("token_name", "Name of the token (TIP-30)"),
    _text("token_symbol", "Symbol of the token (TIP-30)"),
    Column(
        "token_decimals",
        "int",
        "Decimals of the token (TIP-30); null where the immutable metadata does not have it.",
        required=False,
        minimum=0,
    ),
    lookups=("foundry_id", "address"),
)
NFT_OUTPUTS = _outputs(
    "nft_outputs",
    "NFT outputs created.",
    message(doc=f"{_CREATOR}."),
    _chain_id("nft_id", "NFT id; of a new NFT BLAKE2b-256(output id)."),
    _OWNER,
    _SENDER,
    _ISSUER,
    _TAG,
    *_conditions("dust_return_address"),
    _METADATA,
    _IMMUTABLE,
    _text("collection_name", "Name of the NFT's collection (TIP-27)"),
    _text("nft_name", "Name of the NFT (TIP-27)"),
    _text("nft_uri", "Where the NFT's media lies (TIP-27)"),
    lookups=("nft_id", "address", "expiration_return_address", "dust_return_address"),
)
LEGACY_OUTPUTS = _outputs(
    "legacy_outputs",
    "Chrysalis outputs created, those of receipts too.",
    Column("output_type", "int", "0 signature-locked single, 1 dust allowance.", values=(0, 1)),
    message(required=False, doc="Message of the creating transaction; null for a receipt's output."),
    address("address", "Owner", required=True),
    lookups=("address",),
)
TREASURY_OUTPUTS = _outputs(
    "treasury_outputs", "Treasury outputs; output_id is the milestone id.", output_id=HEX32
)

RECEIPTS = Table(
    "receipts",
    "iota",
    "Funds that receipts migrated from the old network, one row each (TIP-17).",
    (
        milestone("Milestone that carries the receipt."),
        milestone_time(),
        count("idx", "Position among the receipt's funds."),
        Column("output_id", "string", "Output created: milestone id || u16 LE position.", pattern=OUTPUT_ID),
        u32("migrated_at", "Milestone of the old network from which the receipt migrates (TIP-17)."),
        Column(
            "final", "int", "1: the last receipt of that milestone; 0: more follow (TIP-17).", values=(0, 1)
        ),
        Column(
            "tail_transaction_hash",
            "string",
            "Hex of the tail transaction's hash (49 bytes) of the bundle that migrated the funds (TIP-17).",
            pattern=r"^[0-9a-f]{98}$",
        ),
        address("address", "Owner of the output", required=True),
        amount("amount", "Migrated funds"),
    ),
    key=("output_id",),
    sort=("milestone_index", "idx"),
    time_column="ms_timestamp",
)

PROTOCOL_PARAMETERS = Table(
    "protocol_parameters",
    "iota",
    "Protocol parameters that milestones announce (TIP-29).",
    (
        milestone("Milestone that announces them."),
        milestone_time(),
        u32("target_milestone_index", "Milestone from which they are in force (TIP-29)."),
        Column(
            "protocol_version", "int", "Protocol version to support from then on.", minimum=0, maximum=255
        ),
        Column("params", "binary", "Serialized parameters of that version (TIP-29)."),
    ),
    key=("milestone_index",),
    sort=("milestone_index",),
    time_column="ms_timestamp",
)

CONSUMED_OUTPUTS = Table(
    "consumed_outputs",
    "iota",
    "Outputs that the day's included transactions and receipts consumed.",
    (
        Column(
            "output_id",
            "string",
            "Id of the consumed output (of a treasury output: its milestone id).",
            pattern=r"^[0-9a-f]{64}([0-9a-f]{4})?$",
        ),
        Column(
            "kind",
            "string",
            "Kind of the output.",
            values=("basic", "alias", "foundry", "nft", "legacy", "treasury"),
        ),
        address("address", "Owner that unlocked it: the return address once an expiration has passed"),
        amount("amount", "Amount of the output"),
        Column(
            "transaction_id",
            "string",
            "Consuming transaction; null for the treasury.",
            required=False,
            pattern=HEX32,
        ),
        message(required=False, doc="Message of the consuming transaction; null for the treasury."),
        milestone("Milestone that consumed the output."),
        milestone_time(),
        Column(
            "data",
            "binary",
            "Raw bytes of the output, from which a mirror proves the day again; null for the treasury, and "
            "where built before this column.",
            required=False,
        ),
    ),
    key=("output_id",),
    sort=("milestone_index", "output_id"),
    time_column="ms_timestamp",
    lookups=("output_id", "address"),
)

MS_ANALYTICS = Table(
    "ms_analytics",
    "iota",
    "Activity per milestone.",
    (
        range_id(),
        milestone("Index of the milestone."),
        count("message_count", "Messages referenced by the milestone."),
        count("transaction_count", "Included transactions."),
        amount("transferred_tokens", "Sum of all outputs of included transactions, remainders counted"),
    ),
    key=("milestone_index",),
    sort=("milestone_index",),
)

ADDRESS_ANALYTICS = Table(
    "address_analytics",
    "iota",
    "Tokens sent and received per address and milestone, over included transactions.",
    (
        address("address", "Address", required=True),
        milestone(),
        amount("sent_tokens", "Sum of the consumed outputs that it unlocked"),
        amount("recv_tokens", "Sum of the created outputs that it owns"),
    ),
    key=("address", "milestone_index"),
    sort=("milestone_index", "address"),
)

DATE_CACHE = Table(
    "date_cache",
    "iota",
    "First and last milestone of a date, both inclusive.",
    (
        DATE,
        Column("start_ms", "int", "First milestone index of the date.", minimum=0),
        Column("end_ms", "int", "Last milestone index of the date.", minimum=0),
    ),
    key=("date",),
)

METRICS_CACHE = Table(
    "metrics_cache",
    "iota",
    "Distinct values behind the daily counts.",
    (
        DATE,
        Column("variant", "string", "What is counted.", values=("address", "index")),
        Column("metric", "string", "How.", values=("sent", "received", "sent_or_received", "used")),
        Column("value", "string", "bech32 address, or tag in hex."),
        Column("metric_value", "binary", "Unused, always null.", required=False),
    ),
    key=("date", "variant", "metric", "value"),
    sort=("variant", "metric", "value"),
)

DAILY_ANALYTICS = Table(
    "daily_analytics",
    "iota",
    "Active addresses per day.",
    (
        Column("year", "int", "Year of the date."),
        DATE,
        count("total_addresses", "Addresses that sent or received."),
        count("send_addresses", "Addresses that sent."),
        count("recv_addresses", "Addresses that received."),
    ),
    key=("date",),
)

DAILY_EXTENDED = Table(
    "daily_extended",
    "iota",
    "Further metrics per day.",
    (
        DATE,
        count("message_count", "Messages referenced."),
        count("included_transaction_count", "Included transactions."),
        count("conflicting_transaction_count", "Messages with a conflicting transaction."),
        amount("transferred_tokens", "Sum of all outputs of included transactions"),
        Column("avg_outputs", "double", "Outputs per included transaction.", required=False),
        count("max_outputs", "Most outputs of an included transaction."),
        count("used_tags", "Distinct tags."),
    ),
    key=("date",),
)

TABLES = (
    MILESTONES,
    MESSAGES,
    PARENTS,
    TAGS,
    TRANSACTIONS,
    BASIC_OUTPUTS,
    ALIAS_OUTPUTS,
    FOUNDRY_OUTPUTS,
    NFT_OUTPUTS,
    LEGACY_OUTPUTS,
    TREASURY_OUTPUTS,
    RECEIPTS,
    PROTOCOL_PARAMETERS,
    CONSUMED_OUTPUTS,
    MS_ANALYTICS,
    ADDRESS_ANALYTICS,
    DATE_CACHE,
    METRICS_CACHE,
    DAILY_ANALYTICS,
    DAILY_EXTENDED,
)
