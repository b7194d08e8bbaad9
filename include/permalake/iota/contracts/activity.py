"""Contracts of a day's activity: its hours, conflicts and intervals, its most active addresses and tags."""

from __future__ import annotations

from permalake.contracts.schema import DATE, HEX, Column, Table
from permalake.iota.contracts.columns import address, amount, count, long

PAYLOADS = ("no_payload", "tagged_data", "transaction", "milestone", "treasury_transaction")
ADDRESS_METRICS = ("received_tokens", "sent_tokens", "received_outputs", "sent_outputs")
TAG_METRICS = ("messages", "transferred_tokens")
TOP = 100
"""Ranks of a metric that a day keeps."""

_RANK = Column(
    "rank", "int", f"1 to {TOP}; of equal values the first in the alphabet.", minimum=1, maximum=TOP
)
_TEXT = Column("text", "string", "The tag as text; null where it is no printable UTF-8.", required=False)


def _some(name: str, doc: str) -> Column:
    return Column(name, "int", doc, minimum=1)


HOURLY_ACTIVITY = Table(
    "hourly_activity",
    "iota",
    "Messages, transactions and tokens by UTC hour and kind of payload (the hour is the milestone's).",
    (
        Column("hour", "int", "UTC hour of the milestone's timestamp.", minimum=0, maximum=23),
        Column("payload", "string", "Kind of the messages' payload.", values=PAYLOADS),
        _some("messages", "Messages referenced."),
        long("message_bytes", "Their bytes."),
        count("included_transactions", "Messages among them with an included transaction."),
        count("conflicting_transactions", "Messages among them with a conflicting transaction."),
        amount("transferred_tokens", "Sum of all outputs of their included transactions"),
        amount("moved_tokens", "What these moved to other addresses (see ms_activity)"),
        DATE,
    ),
    key=("date", "hour", "payload"),
    sort=("hour", "payload"),
)

CONFLICTS_DAILY = Table(
    "conflicts_daily",
    "iota",
    "Messages with a conflicting transaction by the protocol's reason (TIP-13, TIP-25).",
    (
        Column("conflict_reason", "int", "The protocol's own code, 0 where unknown.", minimum=0, maximum=255),
        Column("meaning", "string", "The code in words."),
        _some("messages", "Messages with a conflict of that reason."),
        DATE,
    ),
    key=("date", "conflict_reason"),
    sort=("conflict_reason",),
)

MILESTONE_INTERVALS = Table(
    "milestone_intervals",
    "iota",
    "How long the day's milestones followed each other: by seconds since the milestone before on that day.",
    (
        Column("seconds", "long", "Time since the milestone before; below zero where a clock stepped back."),
        _some("milestones", "Milestones that came after that time."),
        DATE,
    ),
    key=("date", "seconds"),
    sort=("seconds",),
)

TOP_ADDRESSES = Table(
    "top_addresses",
    "iota",
    f"The {TOP} addresses with most tokens or outputs that included transactions created or consumed.",
    (
        Column("metric", "string", "What is ranked.", values=ADDRESS_METRICS),
        _RANK,
        address("address", "Owner, or who unlocked what was sent", required=True),
        Column("value", "long", "Base tokens, or number of outputs.", minimum=1),
        DATE,
    ),
    key=("date", "metric", "rank"),
    sort=("metric", "rank"),
)

TOP_TAGS = Table(
    "top_tags",
    "iota",
    f"The {TOP} tags with most messages, or most tokens in outputs of their included transactions.",
    (
        Column("metric", "string", "What is ranked.", values=TAG_METRICS),
        _RANK,
        Column("tag", "string", "Hex of the tag's bytes.", pattern=HEX),
        _TEXT,
        Column("value", "long", "Number of messages, or base tokens.", minimum=1),
        DATE,
    ),
    key=("date", "metric", "rank"),
    sort=("metric", "rank"),
)

TAG_FAMILIES = Table(
    "tag_families",
    "iota",
    "Tags by family: their text before the first of the delimiters : ; , / | _ . # @ + = ~ - or white space.",
    (
        Column(
            "family",
            "string",
            "Text before the delimiter, the whole one without; empty for tags that are no printable UTF-8 or "
            "begin with a delimiter.",
        ),
        _some("tags", "Distinct tags."),
        _some("messages", "Messages with these tags."),
        count("included_transactions", "Messages among them with an included transaction."),
        amount("transferred_tokens", "Sum of all outputs of their included transactions"),
        DATE,
    ),
    key=("date", "family"),
    sort=("family",),
)

TABLES = (HOURLY_ACTIVITY, CONFLICTS_DAILY, MILESTONE_INTERVALS, TOP_ADDRESSES, TOP_TAGS, TAG_FAMILIES)
