"""Contracts of the tables that follow what moves: native tokens, and the ledger by address."""

from __future__ import annotations

from permalake.contracts.schema import HEX32, OUTPUT_ID, Column, Table
from permalake.iota.contracts.columns import (
    TOKEN_ID,
    address,
    amount,
    count,
    message,
    milestone,
    milestone_time,
    u256,
)

KINDS = ("basic", "alias", "foundry", "nft", "legacy")
"""Kinds of outputs that have an owner."""

_IS_SPENT = Column("is_spent", "int", "0: the output was created, 1: it was consumed.", values=(0, 1))


def _transaction(doc: str, required: bool) -> Column:
    return Column("transaction_id", "string", doc, required=required, pattern=HEX32)


NATIVE_TOKENS = Table(
    "native_tokens",
    "iota",
    "Native tokens in the outputs that included transactions created and consumed (TIP-18).",
    (
        Column("output_id", "string", "Id of the output that holds them.", pattern=OUTPUT_ID),
        _IS_SPENT,
        TOKEN_ID,
        u256("amount", "Amount of the token"),
        address("address", "Owner of the created output, or who unlocked the consumed one", required=True),
        _transaction("Transaction that created or consumed the output.", required=True),
        milestone("Milestone that references the transaction."),
        milestone_time(),
    ),
    key=("output_id", "token_id", "is_spent"),
    sort=("milestone_index", "token_id", "output_id"),
    time_column="ms_timestamp",
    lookups=("token_id",),
)

LEDGER_UPDATES = Table(
    "ledger_updates",
    "iota",
    "The account statement of every address: outputs created for it and consumed by it, those of receipts "
    "too (inx-chronicle's ledger updates).",
    (
        address("address", "Owner of the created output, or who unlocked the consumed one", required=True),
        milestone("Milestone of the change."),
        milestone_time(),
        Column("output_id", "string", "Id of the output.", pattern=OUTPUT_ID),
        _IS_SPENT,
        Column("kind", "string", "Kind of the output.", values=KINDS),
        amount("amount", "Amount of the output"),
        _transaction("Transaction that changed it; null for a receipt's output.", required=False),
        count(
            "counterparties",
            "Other addresses that own outputs of the transaction or unlocked its inputs; 0 for a receipt's.",
        ),
    ),
    key=("address", "output_id", "is_spent"),
    sort=("milestone_index", "address", "output_id", "is_spent"),
    time_column="ms_timestamp",
)

CONFLICTING_TRANSACTIONS = Table(
    "conflicting_transactions",
    "iota",
    "Messages with a conflicting transaction by the addresses that signed it or would own its outputs.",
    (
        address("address", "Signer (TIP-7), or owner of an output", required=True),
        milestone(),
        milestone_time(),
        message(),
        _transaction("Transaction that conflicts.", required=True),
        Column("conflict_reason", "int", "The protocol's own code, 0 where unknown.", minimum=0, maximum=255),
        Column("is_signer", "int", "1: the address signed; 0: it only owns outputs.", values=(0, 1)),
        amount("amount", "What the address would have received"),
    ),
    key=("address", "message_id"),
    sort=("milestone_index", "address", "message_id"),
    time_column="ms_timestamp",
    lookups=("address",),
)

TABLES = (NATIVE_TOKENS, LEDGER_UPDATES, CONFLICTING_TRANSACTIONS)
