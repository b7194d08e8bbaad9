"""Contracts of the IOTA tables (one lake namespace per network)."""

from __future__ import annotations

from permalake.contracts.schema import BECH32, HEX, HEX32, OUTPUT_ID, Column, Table

MAX_U32 = 2**32 - 1


def _milestone(doc: str = "Milestone that references the row's message.") -> Column:
    return Column("milestone_index", "int", doc, minimum=0)


def _range_id() -> Column:
    return Column("ms_range_id", "int", "milestone_index div the network's chunk_size.", minimum=0)


def _timestamp() -> Column:
    return Column("ms_timestamp", "timestamptz", "Time of the milestone.")


def _message(required: bool = True, doc: str = "Id of the message (Stardust: block).") -> Column:
    return Column("message_id", "string", doc, required=required, pattern=HEX32)


def _inclusion(
    doc: str = "0 conflicting, 1 included, 2 no transaction.", values: tuple[int, ...] = (0, 1, 2)
) -> Column:
    return Column("inclusion_state", "int", doc, values=values)


def _address(name: str, doc: str, required: bool = False) -> Column:
    return Column(name, "string", f"{doc} (bech32).", required=required, pattern=BECH32)


def _amount(name: str, doc: str) -> Column:
    return Column(name, "long", f"{doc} (base tokens).", minimum=0)


def _count(name: str, doc: str) -> Column:
    return Column(name, "int", doc, minimum=0)


def _outputs(
    name: str, doc: str, *own: Column, output_id: str = OUTPUT_ID, lookups: tuple[str, ...] = ()
) -> Table:
    return Table(
        name=name,
        group="iota",
        doc=doc,
        body=(
            Column("output_id", "string", "transaction_id || u16 LE index.", pattern=output_id),
            _range_id(),
            _milestone("Milestone that created the output."),
            _timestamp(),
            _inclusion("1: only included transactions and receipts create outputs.", values=(1,)),
            _amount("amount", "Amount of the output"),
            *own,
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
        _milestone("Index of the milestone."),
        _message(
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
)

MESSAGES = Table(
    "messages",
    "iota",
    "Every message (block) that the milestone references, in white-flag order.",
    (
        _message(),
        Column("version", "int", "1 on Chrysalis, the block's protocol version on Stardust.", values=(1, 2)),
        Column("message", "binary", "Raw bytes of the message."),
        _milestone(),
        _count("white_flag_index", "Position in the milestone's white-flag order (post-order DFS)."),
        _inclusion(),
        Column("conflict_reason", "int", "The protocol's own code, 0 when none.", minimum=0, maximum=255),
        Column("proof", "binary", "Proof of inclusion, null until proofs are built.", required=False),
    ),
    key=("message_id",),
    sort=("milestone_index", "white_flag_index"),
    lookups=("message_id",),
)

PARENTS = Table(
    "parents",
    "iota",
    "One row per distinct (parent, message).",
    (
        Column("parent_id", "string", "Id of the approved message.", pattern=HEX32),
        _message(),
        _milestone(),
        _inclusion(),
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
        _range_id(),
        _milestone(),
        _timestamp(),
        _message(),
        _inclusion(),
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
        _message(),
        Column("data", "binary", "Raw bytes of that input, output or unlock."),
        _inclusion("0 conflicting, 1 included.", values=(0, 1)),
        _milestone(),
    ),
    key=("transaction_id", "variant", "idx", "message_id"),
    sort=("milestone_index", "transaction_id", "variant", "idx"),
    lookups=("transaction_id",),
)

_OWNER = _address("address", "Address unlock condition")
_SENDER = _address("sender", "Sender feature")
_ISSUER = _address("issuer", "Issuer feature")
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
        _address(
            "expiration_return_address",
            "Expiration unlock condition (TIP-18): owner of the output once it has expired",
        ),
        _address(
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


def _u32(name: str, doc: str) -> Column:
    return Column(name, "long", doc, minimum=0, maximum=MAX_U32)


def _chain_id(name: str, doc: str, pattern: str = HEX32) -> Column:
    return Column(name, "string", doc, pattern=pattern)


BASIC_OUTPUTS = _outputs(
    "basic_outputs",
    "Basic outputs created, those of receipts too.",
    _message(required=False, doc=f"{_CREATOR}; null for a receipt's output."),
    _OWNER,
    _SENDER,
    _TAG,
    *_conditions("storage_return_address"),
    lookups=("address", "expiration_return_address", "storage_return_address"),
)
ALIAS_OUTPUTS = _outputs(
    "alias_outputs",
    "Alias outputs created, every state of every alias.",
    _message(doc=f"{_CREATOR}."),
    _chain_id("alias_id", "Alias id; of a new alias BLAKE2b-256(output id)."),
    _SENDER,
    _ISSUER,
    _address("state_controller", "State controller"),
    _address("governor", "Governor"),
    _u32("state_index", "Number of state transitions that led to this state (TIP-18)."),
    _u32("foundry_counter", "Number of foundries that the alias has created so far (TIP-18)."),
    _NATIVE_TOKENS,
    lookups=("alias_id", "state_controller", "governor"),
)
FOUNDRY_OUTPUTS = _outputs(
    "foundry_outputs",
    "Foundry outputs created.",
    _message(doc=f"{_CREATOR}."),
    _chain_id("foundry_id", "Alias address || serial number u32 LE || token scheme type.", r"^[0-9a-f]{76}$"),
    _address("address", "Immutable alias address"),
    _u32("serial_number", "Number of the foundry among those of its alias (TIP-18)."),
    _NATIVE_TOKENS,
    lookups=("foundry_id", "address"),
)
NFT_OUTPUTS = _outputs(
    "nft_outputs",
    "NFT outputs created.",
    _message(doc=f"{_CREATOR}."),
    _chain_id("nft_id", "NFT id; of a new NFT BLAKE2b-256(output id)."),
    _OWNER,
    _SENDER,
    _ISSUER,
    _TAG,
    *_conditions("dust_return_address"),
    lookups=("nft_id", "address", "expiration_return_address", "dust_return_address"),
)
LEGACY_OUTPUTS = _outputs(
    "legacy_outputs",
    "Chrysalis outputs created, those of receipts too.",
    Column("output_type", "int", "0 signature-locked single, 1 dust allowance.", values=(0, 1)),
    _message(required=False, doc="Message of the creating transaction; null for a receipt's output."),
    _address("address", "Owner", required=True),
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
        _milestone("Milestone that carries the receipt."),
        _timestamp(),
        _count("idx", "Position among the receipt's funds."),
        Column("output_id", "string", "Output created: milestone id || u16 LE position.", pattern=OUTPUT_ID),
        _u32("migrated_at", "Milestone of the old network from which the receipt migrates (TIP-17)."),
        Column(
            "final", "int", "1: the last receipt of that milestone; 0: more follow (TIP-17).", values=(0, 1)
        ),
        Column(
            "tail_transaction_hash",
            "string",
            "Hex of the tail transaction's hash (49 bytes) of the bundle that migrated the funds (TIP-17).",
            pattern=r"^[0-9a-f]{98}$",
        ),
        _address("address", "Owner of the output", required=True),
        _amount("amount", "Migrated funds"),
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
        _milestone("Milestone that announces them."),
        _timestamp(),
        _u32("target_milestone_index", "Milestone from which they are in force (TIP-29)."),
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
        _address("address", "Owner that unlocked it: the return address once an expiration has passed"),
        _amount("amount", "Amount of the output"),
        Column(
            "transaction_id",
            "string",
            "Consuming transaction; null for the treasury.",
            required=False,
            pattern=HEX32,
        ),
        _message(required=False, doc="Message of the consuming transaction; null for the treasury."),
        _milestone("Milestone that consumed the output."),
        _timestamp(),
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
        _range_id(),
        _milestone("Index of the milestone."),
        _count("message_count", "Messages referenced by the milestone."),
        _count("transaction_count", "Included transactions."),
        _amount("transferred_tokens", "Sum of all outputs of included transactions, remainders counted"),
    ),
    key=("milestone_index",),
    sort=("milestone_index",),
)

ADDRESS_ANALYTICS = Table(
    "address_analytics",
    "iota",
    "Tokens sent and received per address and milestone, over included transactions.",
    (
        _address("address", "Address", required=True),
        _milestone(),
        _amount("sent_tokens", "Sum of the consumed outputs that it unlocked"),
        _amount("recv_tokens", "Sum of the created outputs that it owns"),
    ),
    key=("address", "milestone_index"),
    sort=("milestone_index", "address"),
)

DATE_CACHE = Table(
    "date_cache",
    "iota",
    "First and last milestone of a date, both inclusive.",
    (
        Column("date", "date", "UTC date."),
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
        Column("date", "date", "UTC date."),
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
        Column("date", "date", "UTC date."),
        _count("total_addresses", "Addresses that sent or received."),
        _count("send_addresses", "Addresses that sent."),
        _count("recv_addresses", "Addresses that received."),
    ),
    key=("date",),
)

DAILY_EXTENDED = Table(
    "daily_extended",
    "iota",
    "Further metrics per day.",
    (
        Column("date", "date", "UTC date."),
        _count("message_count", "Messages referenced."),
        _count("included_transaction_count", "Included transactions."),
        _count("conflicting_transaction_count", "Messages with a conflicting transaction."),
        _amount("transferred_tokens", "Sum of all outputs of included transactions"),
        Column("avg_outputs", "double", "Outputs per included transaction.", required=False),
        _count("max_outputs", "Most outputs of an included transaction."),
        _count("used_tags", "Distinct tags."),
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
