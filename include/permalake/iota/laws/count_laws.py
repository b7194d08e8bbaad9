"""Laws of the day's analytics: they follow from the base tables."""

from __future__ import annotations

from permalake.audit.laws import Law, balance, by, entries, per_day, per_row, side, union, unpivoted
from permalake.iota.laws.tangle_sides import AT_MILESTONE, CREATED, INCLUDED, SPENT

_DAILY_FIGURES = (
    *("message_count", "included_transaction_count", "conflicting_transaction_count"),
    *("transferred_tokens", "used_tags", "max_outputs", "avg_outputs"),
)
_ACTIVITY_SUMS = (
    *("confirmed_count", "conflicting_count", "no_transaction_count", "message_bytes", "moved_tokens"),
    *("nft_created_count", "alias_state_changed_count", "foundry_created_count"),
)


def one_row_a_day(name: str, table: str, *tables: str) -> Law:
    """Return the law that each day with milestones has one row in each of ``tables``."""
    listed = " and ".join(filter(None, [", ".join(tables[:-1]), tables[-1]]))
    return balance(
        name,
        table,
        f"Each day with milestones has one row in {listed}.",
        expected=per_row("SELECT DISTINCT date FROM milestones", **dict.fromkeys(tables, "1")),
        actual=union(side(name, f"'{name}'") for name in tables),
    )


_STATES_COUNTED = unpivoted(
    "SELECT * FROM ms_activity",
    f"{AT_MILESTONE} || ' state ' || name",
    {"0": "conflicting_count", "1": "confirmed_count", "2": "no_transaction_count"},
)
"""Messages per milestone and state, as ms_activity counts them."""


def _metric_values() -> str:
    """Return a side of distinct addresses by what they did, and of distinct tags."""
    did = {"sent": "sent_tokens > 0", "received": "recv_tokens > 0", "sent_or_received": "true"}
    places = [
        f"SELECT DISTINCT date, '{metric} ' || address AS place FROM address_analytics WHERE {what}"
        for metric, what in did.items()
    ]
    places.append("SELECT DISTINCT date, 'used ' || tag AS place FROM tags")
    return entries(union(places), "place")


def _day_counted() -> str:
    """Return a side of the figures of daily_extended, counted again."""
    tangle = per_day(
        "messages",
        message_count="count(*)",
        included_transaction_count=f"count_if({INCLUDED})",
        conflicting_transaction_count="count_if(inclusion_state = 0)",
    )
    tokens = per_day("ms_analytics", transferred_tokens="sum(transferred_tokens)")
    tags = per_day("tags", used_tags="count(DISTINCT tag)")
    sizes = f"SELECT date, transaction_id, count(*) AS size FROM {CREATED} GROUP BY date, transaction_id"
    outputs = per_day(sizes, max_outputs="max(size)", avg_outputs="avg(size)")
    return union([tangle, tokens, tags, outputs])


LAWS = (
    balance(
        "messages_add_up",
        "ms_analytics",
        "message_count is the number of messages.",
        expected=side("messages", AT_MILESTONE),
        actual=side("ms_analytics", AT_MILESTONE, "message_count"),
    ),
    balance(
        "transactions_add_up",
        "ms_analytics",
        "transaction_count is the number of included transactions.",
        expected=side("messages", AT_MILESTONE, where=INCLUDED),
        actual=side("ms_analytics", AT_MILESTONE, "transaction_count"),
    ),
    balance(
        "tokens_add_up",
        "ms_analytics",
        "transferred_tokens is the sum of the created outputs.",
        expected=by(CREATED, AT_MILESTONE, "amount"),
        actual=side("ms_analytics", AT_MILESTONE, "transferred_tokens"),
    ),
    balance(
        "states_add_up",
        "ms_activity",
        "Messages by state are as many as in messages.",
        expected=side("messages", f"{AT_MILESTONE} || ' state ' || inclusion_state"),
        actual=_STATES_COUNTED,
    ),
    balance(
        "bytes_add_up",
        "ms_activity",
        "message_bytes is the size of the messages.",
        expected=side("messages", AT_MILESTONE, "octet_length(message)"),
        actual=side("ms_activity", AT_MILESTONE, "message_bytes"),
    ),
    balance(
        "sent_adds_up",
        "address_analytics",
        "sent_tokens is the sum of what the address unlocked.",
        expected=by(SPENT, f"address || ' ' || {AT_MILESTONE}", "amount"),
        actual=side("address_analytics", f"address || ' ' || {AT_MILESTONE}", "sent_tokens"),
    ),
    balance(
        "received_adds_up",
        "address_analytics",
        "recv_tokens is the sum of the created outputs that the address owns.",
        expected=by(CREATED, f"owner || ' ' || {AT_MILESTONE}", "amount"),
        actual=side("address_analytics", f"address || ' ' || {AT_MILESTONE}", "recv_tokens"),
    ),
    balance(
        "first_and_last_milestone",
        "date_cache",
        "start_ms and end_ms are the day's first and last milestone.",
        expected=per_day("milestones", start_ms="min(milestone_index)", end_ms="max(milestone_index)"),
        actual=per_row("date_cache", start_ms="start_ms", end_ms="end_ms"),
    ),
    balance(
        "values_are_those_of_the_day",
        "metrics_cache",
        "Values are the day's distinct addresses, by what they did, and tags.",
        expected=_metric_values(),
        actual=side("metrics_cache", "metric || ' ' || value"),
    ),
    balance(
        "addresses_add_up",
        "daily_analytics",
        "Counts are those of metrics_cache.",
        expected=per_day(
            "metrics_cache",
            total_addresses="count_if(metric = 'sent_or_received')",
            send_addresses="count_if(metric = 'sent')",
            recv_addresses="count_if(metric = 'received')",
        ),
        actual=per_row(
            "daily_analytics",
            total_addresses="total_addresses",
            send_addresses="send_addresses",
            recv_addresses="recv_addresses",
        ),
    ),
    balance(
        "day_adds_up",
        "daily_extended",
        "The day's figures follow from the other tables.",
        expected=_day_counted(),
        actual=per_row("daily_extended", **{name: name for name in _DAILY_FIGURES}),
    ),
    one_row_a_day("one_row_a_day", "daily_extended", "date_cache", "daily_analytics", "daily_extended"),
    one_row_a_day("metrics_of_a_day", "daily_activity", "daily_activity"),
    balance(
        "activity_of_days",
        "daily_activity",
        "The day's figures are those of its milestones.",
        expected=union(
            [
                per_day("ms_activity", **{name: f"sum({name})" for name in _ACTIVITY_SUMS}),
                per_day("ms_activity", milestones="count(*)"),
                per_day("ms_analytics", booked_tokens="sum(transferred_tokens)"),
            ]
        ),
        actual=per_row(
            "daily_activity",
            **{name: name for name in (*_ACTIVITY_SUMS, "milestones", "booked_tokens")},
        ),
    ),
)
