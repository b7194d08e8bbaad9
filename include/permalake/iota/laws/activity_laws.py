"""Laws of a day's activity: its parts add up to the day, and its top lists begin with the most."""

from __future__ import annotations

from collections.abc import Sequence

from permalake.audit.laws import balance, entries, per_day, per_row, side, union, violations
from permalake.iota.contracts.activity import ADDRESS_METRICS, TAG_METRICS

_OF_DAY = {
    "messages": "message_count",
    "included_transactions": "included_transaction_count",
    "conflicting_transactions": "conflicting_transaction_count",
    "transferred_tokens": "transferred_tokens",
}
_OF_ACTIVITY = ("message_bytes", "moved_tokens")
_CONFLICT = "message_id || ' reason ' || conflict_reason"
_REASON = "'reason ' || conflict_reason"
_HOURS = """
SELECT analytics.date AS date, message_count,
    CAST((timestamp % 86400 - timestamp % 3600) / 3600 AS INT) AS hour
FROM ms_analytics AS analytics JOIN milestones AS milestones
    ON analytics.milestone_index = milestones.milestone_index
"""
"""Milestones with their hour."""


def _values(rows: str, name: str, metrics: dict[str, str]) -> str:
    """Return the query of every name's value of each metric: (date, metric, name, value)."""
    sums = ", ".join(f"CAST(sum({value}) AS BIGINT) AS {metric}" for metric, value in metrics.items())
    names = ", ".join(f"('{metric}')" for metric in metrics)
    cases = " ".join(f"WHEN '{metric}' THEN {metric}" for metric in metrics)
    return (
        f"SELECT date, metric, name, value FROM (SELECT date, metric, name, CASE metric {cases} END AS value "
        f"FROM (SELECT date, {name} AS name, {sums} FROM {rows} GROUP BY date, {name}) "
        f"CROSS JOIN (VALUES {names}) AS named(metric)) WHERE value > 0"
    )


_OF_ADDRESSES = _values(
    "(SELECT * FROM ledger_updates WHERE transaction_id IS NOT NULL)",
    "address",
    dict(
        zip(
            ADDRESS_METRICS,
            (
                *(
                    "CASE is_spent WHEN 0 THEN amount ELSE 0 END",
                    "CASE is_spent WHEN 1 THEN amount ELSE 0 END",
                ),
                *("1 - is_spent", "is_spent"),
            ),
            strict=True,
        )
    ),
)
# The number of messages only: no table has the amounts that their transactions move by message.
_OF_TAGS = _values("tags", "tag", {TAG_METRICS[0]: "1"})


def _misstated(table: str, name: str, metrics: Sequence[str], values: str) -> str:
    """Return listed values that differ from the rows behind them, and first ranks that are not the most."""
    listed_metrics = ", ".join(f"'{metric}'" for metric in metrics)
    return f"""
WITH counted AS ({values}),
listed AS (SELECT date, metric, rank, {name} AS name, value FROM {table} WHERE metric IN ({listed_metrics})),
most AS (SELECT date, metric, max(value) AS value FROM counted GROUP BY date, metric)
SELECT listed.date AS date, listed.metric || ' ' || listed.name AS place, counted.value AS expected,
    listed.value AS found
FROM listed LEFT JOIN counted
    ON listed.date = counted.date AND listed.metric = counted.metric AND listed.name = counted.name
WHERE counted.value IS DISTINCT FROM listed.value
UNION ALL
SELECT most.date AS date, 'most ' || most.metric AS place, most.value AS expected, ahead.value AS found
FROM most LEFT JOIN (SELECT date, metric, value FROM listed WHERE rank = 1) AS ahead
    ON most.date = ahead.date AND most.metric = ahead.metric
WHERE most.value IS DISTINCT FROM ahead.value
"""


def _misranked(table: str) -> str:
    """Return the ranks that are out of order or leave a number out."""
    by_rank = "OVER (PARTITION BY date, metric ORDER BY rank)"
    return f"""
SELECT date, metric || ' rank ' || rank AS place, 'at most ' || earlier AS expected, value AS found
FROM (
    SELECT date, metric, rank, value, row_number() {by_rank} AS place_in_row, lag(value) {by_rank} AS earlier
    FROM {table}
) WHERE rank <> place_in_row OR value > earlier
"""


LAWS = (
    balance(
        "hours_add_up",
        "hourly_activity",
        "The hours' figures add up to those of daily_extended and daily_activity.",
        expected=union(
            [
                per_row("daily_extended", **_OF_DAY),
                per_row("daily_activity", **{name: name for name in _OF_ACTIVITY}),
            ]
        ),
        actual=per_day("hourly_activity", **{name: f"sum({name})" for name in (*_OF_DAY, *_OF_ACTIVITY)}),
    ),
    balance(
        "hours_hold_messages",
        "hourly_activity",
        "Every hour has the messages of its milestones.",
        expected=entries(_HOURS, "'hour ' || hour", "message_count"),
        actual=side("hourly_activity", "'hour ' || hour", "messages"),
    ),
    balance(
        "conflicts_add_up",
        "conflicts_daily",
        "Conflicts by reason are the conflicting messages.",
        expected=side("messages", _REASON, where="inclusion_state = 0"),
        actual=side("conflicts_daily", _REASON, "messages"),
    ),
    balance(
        "conflicts_have_addresses",
        "conflicting_transactions",
        "Every conflicting message has rows by address, with its reason.",
        expected=side("messages", _CONFLICT, where="inclusion_state = 0"),
        actual=entries(
            "SELECT DISTINCT date, message_id, conflict_reason FROM conflicting_transactions", _CONFLICT
        ),
    ),
    balance(
        "intervals_add_up",
        "milestone_intervals",
        "Intervals reach from the day's first milestone to its last.",
        expected=per_day(
            "milestones",
            milestones="count(*) - 1",
            seconds="arg_max(timestamp, milestone_index) - arg_min(timestamp, milestone_index)",
        ),
        actual=per_day(
            "milestone_intervals", milestones="sum(milestones)", seconds="sum(seconds * milestones)"
        ),
    ),
    balance(
        "families_add_up",
        "tag_families",
        "Families hold the day's tags and messages.",
        expected=per_day("tags", messages="count(*)", tags="count(DISTINCT tag)"),
        actual=per_day("tag_families", messages="sum(messages)", tags="sum(tags)"),
    ),
    *(
        law
        for table, name, metrics, values in (
            ("top_addresses", "address", ADDRESS_METRICS, _OF_ADDRESSES),
            ("top_tags", "tag", TAG_METRICS[:1], _OF_TAGS),
        )
        for law in (
            violations(
                f"{table}_in_order",
                table,
                "Ranks run from 1, and no value is greater than one of an earlier rank.",
                _misranked(table),
            ),
            violations(
                f"{table}_add_up",
                table,
                "Values are those of the rows behind them, and rank 1 has the greatest.",
                _misstated(table, name, metrics, values),
            ),
        )
    ),
)
