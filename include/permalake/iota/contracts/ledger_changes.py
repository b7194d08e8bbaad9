"""Contracts of what a day changed in the ledger: all that the carried tables need of a day."""

from __future__ import annotations

from permalake.contracts.schema import DATE, Column, Table
from permalake.iota.contracts.columns import address, long

KINDS = ("basic", "alias", "foundry", "nft", "legacy", "treasury")
CONDITIONS = ("timelock", "expiration", "storage_deposit_return")
SIDES = ("created", "consumed")
KEY_BYTES, METADATA_BYTES = 34, 40
"""Bytes that an output takes beside its own: its id, and block id, milestone index and time (TIP-19)."""
DATA_WEIGHT, KEY_WEIGHT = 1, 10
"""Factors of a data byte and of a key byte in an output's virtual size (TIP-19)."""

LEDGER_CHANGES = Table(
    "ledger_changes",
    "iota",
    "What the day created and consumed, every kind of output: included transactions, receipts and the "
    "treasury (TIP-17, TIP-18). The carried tables of the ledger continue from it.",
    (
        Column("kind", "string", "Kind of the outputs.", values=KINDS),
        Column("side", "string", "Whether the day created or consumed them.", values=SIDES),
        long("count", "Number of outputs."),
        long("amount", "Their amount (base tokens)."),
        long("bytes", "Their serialized bytes."),
        *(
            column
            for condition in CONDITIONS
            for column in (
                long(f"{condition}_count", f"Outputs with the unlock condition {condition}."),
                long(f"{condition}_amount", "Amount of these outputs (base tokens)."),
            )
        ),
        long("returned", "Storage deposit to be returned (base tokens)."),
        Column(
            "deposit",
            "long",
            "Their storage deposit: of each the smaller of its amount and its rent (TIP-19, base tokens). "
            "Null where the network's v_byte_cost is not configured.",
            required=False,
            minimum=0,
        ),
        DATE,
    ),
    key=("date", "kind", "side"),
    sort=("kind", "side"),
)

BALANCE_CHANGES = Table(
    "balance_changes",
    "iota",
    "What the day changed of the balance of each address that it touched. An output belongs to its address "
    "unlock condition or state controller, expired or not. The carried tables of addresses continue from it.",
    (
        address("address", "Owner", required=True),
        Column("change", "long", "Amount created less amount consumed (base tokens)."),
        Column(
            "is_active",
            "int",
            "1: it sent or received in an included transaction (address_analytics).",
            values=(0, 1),
        ),
        DATE,
    ),
    key=("date", "address"),
    sort=("address",),
)

TABLES = (LEDGER_CHANGES, BALANCE_CHANGES)
