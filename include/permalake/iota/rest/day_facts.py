"""What the explorer's page of a day shows: its milestones, hours and most frequent tags."""

from __future__ import annotations

from datetime import date
from typing import Any

from permalake.contracts import QUARANTINE
from permalake.contracts.figures import Unit
from permalake.lake.serving import Scan
from permalake.lake.status import notes_of
from permalake.web.charts import bars
from permalake.web.numbers import CoinUnit, formatted, tick
from permalake.web.problems import not_found
from permalake.web.state import RequestLake

_HOURS = range(24)
_FIGURES = (
    ("Messages", "messages", "count"),
    ("Included transactions", "included", "count"),
    ("Conflicting transactions", "conflicting", "count"),
    ("Tokens moved", "moved", "tokens"),
)


def day_facts(lake: RequestLake, day: date, coin: CoinUnit) -> dict[str, Any]:
    """Return a published day: ``first`` and ``last`` milestone, sums, hours, tags, notes, what was refused.

    Raises:
        ProblemError: 404 for another day.
    """
    bound, scan = {"day": day}, Scan(day, day)
    rows = lake.kept_rows("SELECT start_ms, end_ms FROM date_cache WHERE date = $day", bound, date_cache=scan)
    if not rows:
        raise not_found(f"the day {day}")
    hours = lake.kept_rows(
        "SELECT hour, CAST(sum(messages) AS BIGINT) AS messages, "
        "CAST(sum(included_transactions) AS BIGINT) AS included, "
        "CAST(sum(conflicting_transactions) AS BIGINT) AS conflicting, "
        "CAST(sum(moved_tokens) AS BIGINT) AS moved "
        "FROM hourly_activity WHERE date = $day GROUP BY hour ORDER BY hour",
        bound,
        hourly_activity=scan,
    )
    tags = lake.kept_rows(
        "SELECT rank, tag, text, value FROM top_tags WHERE date = $day AND metric = 'messages' ORDER BY rank",
        bound,
        top_tags=scan,
    )
    days = lake.snapshot.days(lake.network, "date_cache")
    return {
        "date": day.isoformat(),
        "previous": max((other.isoformat() for other in days if other < day), default=None),
        "next": min((other.isoformat() for other in days if other > day), default=None),
        "first": rows[0]["start_ms"],
        "last": rows[0]["end_ms"],
        "figures": [
            {"label": label, "value": value, "shown": formatted(value, unit, coin)}  # type: ignore[arg-type]
            for label, name, unit in (_FIGURES if hours else ())
            for value in [sum(row[name] for row in hours)]
        ],
        "hours": [dict(row) for row in hours],
        "messages_by_hour": _by_hour(hours, day, "messages", "Messages by hour", coin),
        "moved_by_hour": _by_hour(hours, day, "moved", "Tokens moved by hour", coin),
        "tags": [dict(row) for row in tags],
        "notes": notes_of(lake.request.app.state.database, lake.network, day),
        "refused": _refused(lake, day, scan),
    }


def _refused(lake: RequestLake, day: date, scan: Scan) -> list[dict[str, Any]]:
    """Return how many inputs of the day were refused, by the code of the reason."""
    if not lake.snapshot.table(lake.network, QUARANTINE.name):
        return []
    rows = lake.rows(
        "SELECT reason, count(*) AS inputs FROM quarantine WHERE date = $day "
        "GROUP BY reason ORDER BY inputs DESC, reason",
        {"day": day},
        quarantine=scan,
    )
    return [dict(row) for row in rows]


def _by_hour(hours: Any, day: date, name: str, title: str, coin: CoinUnit) -> Any:
    """Draw a figure of the hours; None where the lake does not hold any."""
    if not hours:
        return None
    unit: Unit = "tokens" if name == "moved" else "count"
    by_hour = {row["hour"]: row[name] for row in hours}
    times = [f"{hour:02d}:00" for hour in _HOURS]
    return bars(
        times,
        {name: [by_hour.get(hour) for hour in _HOURS]},
        label=lambda value: formatted(value, unit, coin),
        parts=False,
        title=f"{title} of {day}",
        whole=unit == "count",
        tick=lambda value: tick(value, unit, coin),
    )
