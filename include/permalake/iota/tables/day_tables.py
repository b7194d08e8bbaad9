"""Analytics of an IOTA day alone: which frame becomes which."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pyspark.sql import DataFrame

from permalake.iota.tables import (
    address_state,
    daily,
    day_activity,
    ledger_daily,
)

Tables = Callable[[str], DataFrame]
Group = dict[str, Callable[[], DataFrame]]


def analytics_tables(decoded: DataFrame, staged: Tables, v_byte_cost: int | None = None) -> list[Group]:
    """Return analytics of the days alone, in groups of which each reads what an earlier one staged.

    ``staged`` gives a table of these days that was staged before. ``v_byte_cost``: rent per weighted byte in
    base tokens (TIP-19), where it is known.
    """
    per_tag = day_activity.per_tag(decoded).persist()
    return [
        {
            "date_cache": lambda: daily.date_cache(staged("milestones")),
            "hourly_activity": lambda: day_activity.hourly_activity(
                staged("milestones"), staged("ms_activity"), staged("ms_analytics")
            ),
            "conflicts_daily": partial(day_activity.conflicts_daily, decoded),
            "milestone_intervals": lambda: day_activity.milestone_intervals(staged("milestones")),
            "top_tags": partial(day_activity.top_tags, per_tag),
            "tag_families": partial(day_activity.tag_families, per_tag),
        },
        {
            "metrics_cache": lambda: daily.metrics_cache(staged("address_analytics"), staged("tags")),
            "ledger_changes": lambda: ledger_daily.ledger_changes(decoded, staged("date_cache"), v_byte_cost),
            "balance_changes": lambda: address_state.balance_changes(decoded, staged("address_analytics")),
            "top_addresses": lambda: day_activity.top_addresses(staged("ledger_updates")),
        },
        {
            "daily_analytics": lambda: daily.daily_analytics(staged("metrics_cache"), staged("date_cache")),
            "daily_extended": lambda: daily.daily_extended(
                staged("messages"), staged("transactions"), staged("metrics_cache"), staged("ms_analytics")
            ),
            "daily_activity": lambda: daily.daily_activity(staged("ms_activity"), staged("ms_analytics")),
        },
    ]
