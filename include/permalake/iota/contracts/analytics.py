"""Contracts of the analytics of milestones, addresses and days."""

from __future__ import annotations

from permalake.contracts.schema import DATE, Column, Table
from permalake.iota.contracts.columns import (
    address,
    amount,
    count,
    milestone,
    range_id,
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
    MS_ANALYTICS,
    ADDRESS_ANALYTICS,
    DATE_CACHE,
    METRICS_CACHE,
    DAILY_ANALYTICS,
    DAILY_EXTENDED,
)
