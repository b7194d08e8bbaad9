"""Laws of the day's analytics: they follow from the base tables."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from permalake.audit.laws import Law, balance, by, entries, per_day, per_row, side, union
from permalake.audit.scope import Scope
from permalake.iota.laws.tangle_sides import AT_MILESTONE, INCLUDED, created, spent

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
        expected=lambda scope: per_row(
            scope("milestones").select("date").distinct(), **dict.fromkeys(tables, "1")
        ),
        found=lambda scope: union(side(one, f"'{one}'")(scope) for one in tables),
    )


def _states_counted(scope: Scope) -> DataFrame:
    """Return messages per milestone and state, as ms_activity counts them."""
    counts = {0: "conflicting_count", 1: "confirmed_count", 2: "no_transaction_count"}
    rows = scope("ms_activity").selectExpr(
        *("date", "milestone_index"),
        f"stack(3, {', '.join(f'{state}, {count}' for state, count in counts.items())}) AS (state, n)",
    )
    return entries(rows, f"concat({AT_MILESTONE}, ' state ', state)", "n")


def _metric_values(scope: Scope) -> DataFrame:
    """Return distinct addresses by what they did, and distinct tags, from the rows behind them."""
    did = {"sent": "sent_tokens > 0", "received": "recv_tokens > 0", "sent_or_received": "true"}
    frames = [
        scope("address_analytics").where(what).selectExpr("date", f"'{metric} ' || address AS place")
        for metric, what in did.items()
    ]
    tags = scope("tags").selectExpr("date", "'used ' || tag AS place")
    return entries(union([*frames, tags]).distinct(), "place")


def _day_counted(scope: Scope) -> DataFrame:
    """Return the figures of daily_extended, counted again."""
    tangle = per_day(
        scope("messages"),
        message_count="count(*)",
        included_transaction_count=f"count_if({INCLUDED})",
        conflicting_transaction_count="count_if(inclusion_state = 0)",
    )
    tokens = per_day(scope("ms_analytics"), transferred_tokens="sum(transferred_tokens)")
    tags = per_day(scope("tags"), used_tags="count(DISTINCT tag)")
    sizes = created(scope).groupBy("date", "transaction_id").agg(F.count("*").alias("size"))
    outputs = per_day(sizes, max_outputs="max(size)", avg_outputs="avg(size)")
    return union([tangle, tokens, tags, outputs])


LAWS = (
    balance(
        "messages_add_up",
        "ms_analytics",
        "message_count is the number of messages.",
        expected=side("messages", AT_MILESTONE),
        found=side("ms_analytics", AT_MILESTONE, "message_count"),
    ),
    balance(
        "transactions_add_up",
        "ms_analytics",
        "transaction_count is the number of included transactions.",
        expected=side("messages", AT_MILESTONE, where=INCLUDED),
        found=side("ms_analytics", AT_MILESTONE, "transaction_count"),
    ),
    balance(
        "tokens_add_up",
        "ms_analytics",
        "transferred_tokens is the sum of the created outputs.",
        expected=by(created, AT_MILESTONE, "amount"),
        found=side("ms_analytics", AT_MILESTONE, "transferred_tokens"),
    ),
    balance(
        "states_add_up",
        "ms_activity",
        "Messages by state are as many as in messages.",
        expected=side("messages", f"concat({AT_MILESTONE}, ' state ', inclusion_state)"),
        found=_states_counted,
    ),
    balance(
        "bytes_add_up",
        "ms_activity",
        "message_bytes is the size of the messages.",
        expected=side("messages", AT_MILESTONE, "length(message)"),
        found=side("ms_activity", AT_MILESTONE, "message_bytes"),
    ),
    balance(
        "sent_adds_up",
        "address_analytics",
        "sent_tokens is the sum of what the address unlocked.",
        expected=by(spent, f"concat(address, ' ', {AT_MILESTONE})", "amount"),
        found=side("address_analytics", f"concat(address, ' ', {AT_MILESTONE})", "sent_tokens"),
    ),
    balance(
        "received_adds_up",
        "address_analytics",
        "recv_tokens is the sum of the created outputs that the address owns.",
        expected=by(created, f"concat(owner, ' ', {AT_MILESTONE})", "amount"),
        found=side("address_analytics", f"concat(address, ' ', {AT_MILESTONE})", "recv_tokens"),
    ),
    balance(
        "first_and_last_milestone",
        "date_cache",
        "start_ms and end_ms are the day's first and last milestone.",
        expected=lambda scope: per_day(
            scope("milestones"), start_ms="min(milestone_index)", end_ms="max(milestone_index)"
        ),
        found=lambda scope: per_row(scope("date_cache"), start_ms="start_ms", end_ms="end_ms"),
    ),
    balance(
        "values_are_those_of_the_day",
        "metrics_cache",
        "Values are the day's distinct addresses, by what they did, and tags.",
        expected=_metric_values,
        found=side("metrics_cache", "concat(metric, ' ', value)"),
    ),
    balance(
        "addresses_add_up",
        "daily_analytics",
        "Counts are those of metrics_cache.",
        expected=lambda scope: per_day(
            scope("metrics_cache"),
            total_addresses="count_if(metric = 'sent_or_received')",
            send_addresses="count_if(metric = 'sent')",
            recv_addresses="count_if(metric = 'received')",
        ),
        found=lambda scope: per_row(
            scope("daily_analytics"),
            total_addresses="total_addresses",
            send_addresses="send_addresses",
            recv_addresses="recv_addresses",
        ),
    ),
    balance(
        "day_adds_up",
        "daily_extended",
        "The day's figures follow from the other tables.",
        expected=_day_counted,
        found=lambda scope: per_row(scope("daily_extended"), **{name: name for name in _DAILY_FIGURES}),
    ),
    one_row_a_day("one_row_a_day", "daily_extended", "date_cache", "daily_analytics", "daily_extended"),
    one_row_a_day("metrics_of_a_day", "daily_activity", "daily_activity"),
    balance(
        "activity_of_days",
        "daily_activity",
        "The day's figures are those of its milestones.",
        expected=lambda scope: union(
            [
                per_day(scope("ms_activity"), **{name: f"sum({name})" for name in _ACTIVITY_SUMS}),
                per_day(scope("ms_activity"), milestones="count(*)"),
                per_day(scope("ms_analytics"), booked_tokens="sum(transferred_tokens)"),
            ]
        ),
        found=lambda scope: per_row(
            scope("daily_activity"),
            **{name: name for name in (*_ACTIVITY_SUMS, "milestones", "booked_tokens")},
        ),
    ),
)
