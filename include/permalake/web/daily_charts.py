"""Charts of a network's days, from the declarations of its domain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from permalake.contracts.figures import DailyChart, Unit
from permalake.lake.serving import Scan
from permalake.web.charts import bars
from permalake.web.numbers import dollars, short, size
from permalake.web.state import RequestLake

_LABELS: Mapping[Unit, Callable[[Any], str]] = {"usd": dollars, "bytes": size}


def formatted(value: Any, unit: Unit) -> str:
    """Return a figure as the pages show it."""
    return _LABELS.get(unit, short)(value)


def daily_chart(lake: RequestLake, chart: DailyChart, first: date, last: date) -> dict[str, Any]:
    """Return a chart as ``{title, days, series, since, sql, csv, parquet, svg}``; no days without rows.

    ``since``: milestone from which on a running figure counts, where history is cut; else None.
    """
    rows = lake.kept_rows(chart.sql, {"first": first, "last": last}, **{chart.table: Scan(first, last)})
    days = [row["date"].isoformat() for row in rows]
    series = {label: [row[label] for row in rows] for label, _ in chart.series}
    label = _LABELS.get(chart.unit, short)
    data = f"/api/analytics/v1/{lake.network}/{chart.table}?start={first}&end={last}&format="
    return {
        "title": chart.title,
        "unit": chart.unit,
        "days": days,
        "series": series,
        "since": _since(lake, chart, first, last) if chart.running else None,
        "sql": chart.sql.replace("FROM ", f'FROM "{lake.network}".')
        .replace("$first", f"'{first}'")
        .replace("$last", f"'{last}'"),
        "csv": data + "csv",
        "parquet": data + "parquet",
        "svg": bars(days, series, label=label, parts=chart.parts, title=chart.title) if days else None,
    }


def _since(lake: RequestLake, chart: DailyChart, first: date, last: date) -> int | None:
    [row] = lake.kept_rows(
        f"SELECT max(since_milestone) AS since FROM {chart.table} "  # noqa: S608
        "WHERE date BETWEEN $first AND $last",
        {"first": first, "last": last},
        **{chart.table: Scan(first, last)},
    )
    since: int | None = row["since"]
    return since
