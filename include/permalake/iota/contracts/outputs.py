"""Contracts of outputs: a table per kind, and what consumed them."""

from __future__ import annotations

from permalake.contracts.schema import HEX, HEX32, OUTPUT_ID, Column, Table
from permalake.iota.contracts.columns import (
    MAX_U32,
    address,
    amount,
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

OUTPUT_TABLES = (
    BASIC_OUTPUTS,
    ALIAS_OUTPUTS,
    FOUNDRY_OUTPUTS,
    NFT_OUTPUTS,
    LEGACY_OUTPUTS,
    TREASURY_OUTPUTS,
)
"""Created outputs, by kind."""
