"""Contracts of the carried tables: the ledger and its owners at a day's end.

Figures (``unspent_…``, balances) are absolute only where the lake knows the whole ledger. ``since_milestone``
is the first milestone that they count.
"""

from __future__ import annotations

from permalake.contracts.schema import DATE, Column, Table
from permalake.iota.contracts.columns import address, count, long, milestone
from permalake.iota.contracts.ledger_changes import CONDITIONS, KEY_BYTES, KEY_WEIGHT, KINDS, METADATA_BYTES

PERIODS = ("day", "week", "month", "year")

_SINCE = Column(
    "since_milestone",
    "int",
    "First milestone whose changes the running figures count: history is cut there, and they are differences "
    "to the ledger before it. Null: the whole ledger is known, and they are absolute.",
    required=False,
    minimum=0,
)


ACTIVE_ADDRESSES = Table(
    "active_addresses",
    "iota",
    "Distinct addresses that unlocked a consumed output or own a created one, in the calendar day, week, "
    "month and year so far.",
    (
        Column("period", "string", "Kind of period (a week begins on Monday).", values=PERIODS),
        Column("start_date", "date", "First date of the period, which counts up to date."),
        Column("days", "int", "Days of the period that count: those in the lake with milestones.", minimum=1),
        count("addresses", "Distinct addresses."),
        DATE,
    ),
    key=("date", "period"),
    sort=("period",),
    commit="carried",
)


def _measured(*measures: tuple[str, str]) -> tuple[Column, ...]:
    """Columns of each measure, of what the day created and consumed and of what is unspent at its end."""
    return (
        *(long(f"created_{name}", f"{doc} of outputs that the day created.") for name, doc in measures),
        *(long(f"consumed_{name}", f"{doc} of outputs that the day consumed.") for name, doc in measures),
        *(
            Column(f"unspent_{name}", "long", f"{doc} of outputs unspent at its end.")
            for name, doc in measures
        ),
    )


_COUNT, _AMOUNT = ("count", "Number"), ("amount", "Amount (base tokens)")

LEDGER_OUTPUTS = Table(
    "ledger_outputs",
    "iota",
    "Outputs by kind: what the day created and consumed, and the ledger at its end.",
    (
        Column("kind", "string", "Kind of the outputs.", values=KINDS),
        *_measured(_COUNT, _AMOUNT, ("bytes", "Serialized bytes")),
        _SINCE,
        DATE,
    ),
    key=("date", "kind"),
    sort=("kind",),
    commit="carried",
)

UNLOCK_CONDITIONS = Table(
    "unlock_conditions",
    "iota",
    "Outputs by unlock condition: what the day created and consumed, and the ledger at its end.",
    (
        Column("condition", "string", "Condition besides the address.", values=CONDITIONS),
        *_measured(_COUNT, _AMOUNT, ("return_amount", "Storage deposit to be returned (base tokens)")),
        _SINCE,
        DATE,
    ),
    key=("date", "condition"),
    sort=("condition",),
    commit="carried",
)

LEDGER_TOTALS = Table(
    "ledger_totals",
    "iota",
    "The ledger at the day's end: its size (TIP-19), and who holds it.",
    (
        milestone("The day's last milestone: the ledger is that after it."),
        Column("outputs", "long", "Unspent outputs but for the treasury."),
        Column("amount", "long", "Their amount (base tokens)."),
        Column(
            "key_bytes",
            "long",
            f"Bytes of unspent outputs that weigh as keys ({KEY_BYTES} each). Null on Chrysalis.",
            required=False,
        ),
        Column(
            "data_bytes",
            "long",
            "Bytes of unspent outputs that weigh as data (serialized, and "
            f"{METADATA_BYTES} of metadata each). Null on Chrysalis.",
            required=False,
        ),
        Column(
            "storage_deposit",
            "long",
            "Storage deposit of all unspent outputs (base tokens): of each the smaller of its amount and its "
            f"rent, v_byte_cost x ({KEY_WEIGHT} key bytes + data bytes). Null on Chrysalis, and where the "
            "network's v_byte_cost is not configured or was not when the history began.",
            required=False,
        ),
        Column("holders", "long", "Addresses with a balance, one below zero (history is cut) included."),
        Column(
            "checkpoint",
            "date",
            "Date from which on address_balances has to be read to know every address at the day's end.",
        ),
        Column("fingerprint", "long", "Of all balances and activity: another state has another one."),
        _SINCE,
        DATE,
    ),
    key=("date",),
    commit="carried",
)

ADDRESS_BALANCES = Table(
    "address_balances",
    "iota",
    "Balances at the day's end of the addresses that the day touched; at a checkpoint (see ledger_totals) of "
    "every address with a balance, or active in the year. The last row since the checkpoint counts.",
    (
        address("address", "Owner: address unlock condition or state controller", required=True),
        Column("balance", "long", "Sum of its unspent outputs (base tokens)."),
        Column(
            "active_on",
            "date",
            "Last date on which it sent or received; may be null where no period of the date holds it.",
            required=False,
        ),
        _SINCE,
        DATE,
    ),
    key=("date", "address"),
    sort=("address",),
    commit="carried",
)

TOKEN_DISTRIBUTION = Table(
    "token_distribution",
    "iota",
    "Addresses by the power of ten of their balance at the day's end.",
    (
        Column(
            "bucket",
            "int",
            "Balances from 10^bucket to below 10^(bucket + 1); -1: below zero, where history is cut.",
            minimum=-1,
            maximum=18,
        ),
        Column("addresses", "long", "Number of addresses.", minimum=1),
        Column("amount", "long", "Sum of their balances (base tokens)."),
        _SINCE,
        DATE,
    ),
    key=("date", "bucket"),
    sort=("bucket",),
    commit="carried",
)

RICHEST_ADDRESSES = Table(
    "richest_addresses",
    "iota",
    "The addresses with the largest balances at the day's end.",
    (
        Column("rank", "int", "1 for the largest; of equal balances the first in the alphabet.", minimum=1),
        address("address", "Owner", required=True),
        Column("balance", "long", "Sum of its unspent outputs (base tokens).", minimum=1),
        _SINCE,
        DATE,
    ),
    key=("date", "rank"),
    sort=("rank",),
    commit="carried",
)

TABLES = (
    ACTIVE_ADDRESSES,
    LEDGER_OUTPUTS,
    UNLOCK_CONDITIONS,
    LEDGER_TOTALS,
    ADDRESS_BALANCES,
    TOKEN_DISTRIBUTION,
    RICHEST_ADDRESSES,
)
