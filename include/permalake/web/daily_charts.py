"""Charts of a network's days, from the declarations of its domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from markupsafe import Markup

from permalake.contracts.figures import DailyChart
from permalake.contracts.sql_text import literal
from permalake.lake.serving import Scan
from permalake.web.charts import bars
from permalake.web.numbers import CoinUnit, formatted, tick
from permalake.web.state import RequestLake


def daily_chart(
    lake: RequestLake, chart: DailyChart, first: date, last: date, coin: CoinUnit | None = None
) -> dict[str, Any]:
    """Return a chart as ``{title, unit, days, series, since, sql, csv, parquet, svg}``.

    ``days`` are those with a figure: a chart without any has none. ``since``: milestone from which on a
    running figure counts, where history is cut; else None. ``svg``: None for a single day.
    """
    bound = {"first": first, "last": last}
    rows = lake.kept_rows(chart.sql, bound, **{chart.table: Scan(first, last)})
    data = f"/api/analytics/v1/{lake.network}/{chart.table}?start={first}&end={last}&format="
    return {
        **chart_of(lake, chart, rows, chart.sql, bound, coin),
        "since": _since(lake, chart, first, last) if chart.running else None,
        "csv": data + "csv",
        "parquet": data + "parquet",
    }


def chart_of(  # noqa: PLR0917
    lake: RequestLake,
    chart: DailyChart,
    rows: Sequence[Mapping[str, Any]],
    sql: str,
    bound: Mapping[str, Any],
    coin: CoinUnit | None = None,
) -> dict[str, Any]:
    """Return :func:`daily_chart` of the rows of a statement, without files that hold them."""
    rows = [row for row in rows if any(row[name] is not None for name, _ in chart.series)]
    days = [row["date"].isoformat() for row in rows]
    series = {name: [row[name] for row in rows] for name, _ in chart.series}
    shown = sql.replace("FROM ", f'FROM "{lake.network}".')
    for name, value in bound.items():
        shown = shown.replace(f"${name}", literal(value if isinstance(value, int) else str(value)))
    return {
        "title": chart.title,
        "unit": chart.unit,
        "note": chart.note,
        "days": days,
        "series": series,
        "since": None,
        "sql": shown,
        "csv": "",
        "parquet": "",
        "svg": _drawn(chart, rows, coin) if len(days) > 1 else None,
    }


def _drawn(chart: DailyChart, rows: Sequence[Mapping[str, Any]], coin: CoinUnit | None) -> Markup:
    """Return the bars of every day from the first row to the last one."""
    first, last = rows[0]["date"], rows[-1]["date"]
    by_day = {row["date"]: row for row in rows}
    days = [first + timedelta(number) for number in range((last - first).days + 1)]
    return bars(
        [day.isoformat() for day in days],
        {name: [by_day[day][name] if day in by_day else None for day in days] for name, _ in chart.series},
        label=lambda value: formatted(value, chart.unit, coin),
        parts=chart.parts,
        title=chart.title,
        whole=chart.unit == "count",
        tick=lambda value: tick(value, chart.unit, coin),
    )


def _since(lake: RequestLake, chart: DailyChart, first: date, last: date) -> int | None:
    [row] = lake.kept_rows(
        f"SELECT max(since_milestone) AS since FROM {chart.table} "  # noqa: S608
        "WHERE date BETWEEN $first AND $last",
        {"first": first, "last": last},
        **{chart.table: Scan(first, last)},
    )
    since: int | None = row["since"]
    return since
