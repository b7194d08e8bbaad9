"""Calendars of days and hours: the same two views in every namespace, so that a join by date spans networks.

A calendar has every day from the first published one to the last, without gaps, in UTC.
"""

from __future__ import annotations

from permalake.contracts.schema import DATE, Column
from permalake.contracts.views import LakeView

_PUBLISHED = Column(
    "is_published",
    "int",
    "1: rows of this day are published; 0: it is missing, or was published without any milestone or VAA, "
    "which `permalake status` tells apart.",
    values=(0, 1),
)
# Wormhole's 1970-01-01 stands for VAAs without a time.
_DAYS = """
    SELECT span.date AS date, CAST(published.date IS NOT NULL AS INT) AS is_published FROM (
        SELECT first + CAST(unnest(range(last - first + 1)) AS INT) AS date
        FROM (SELECT min(date) AS first, max(date) AS last FROM published)
    ) AS span LEFT JOIN published ON published.date = span.date
"""


def _parts(**parts: str) -> str:
    return ", ".join(f"CAST(extract({part} FROM date) AS INT) AS {name}" for name, part in parts.items())


_NUMBERS = _parts(
    **{"year": "year", "quarter": "quarter", "month": "month", "day": "day"},
    **{"iso_year": "isoyear", "iso_week": "week", "weekday": "isodow"},
)


def _moment(hours: str) -> str:
    """Return the SQL of so many hours after midnight, whatever time zone the session has."""
    return f"(date + to_hours({hours})) AT TIME ZONE 'UTC'"


def calendars(table: str) -> tuple[LakeView, LakeView]:
    """Return the views ``calendar_days`` and ``calendar_hours`` of a namespace.

    Args:
        table: The namespace's table that has a row on every published day, and the fewest of them.
    """
    published = (
        f"WITH published AS (SELECT DISTINCT date FROM {{network}}.{table} "  # noqa: S608
        "WHERE date <= CAST(as_of AS DATE) AND date > DATE '1970-01-01') "
    )
    days = LakeView(
        "calendar_days",
        "all",
        "Every UTC day from the first published one to the last: its place in year and week, and whether it "
        "is published.",
        (
            DATE,
            Column("year", "int", "Calendar year."),
            Column("quarter", "int", "Quarter of the year, 1 to 4."),
            Column("month", "int", "Month of the year, 1 to 12."),
            Column("day", "int", "Day of the month, 1 to 31."),
            Column("iso_year", "int", "Year of the ISO 8601 week, which differs from year around 1 January."),
            Column("iso_week", "int", "ISO 8601 week of that year, 1 to 53; it begins on a Monday."),
            Column("weekday", "int", "ISO 8601 weekday: 1 is Monday, 7 is Sunday."),
            Column("first_hour", "timestamptz", "Beginning of the day's first hour."),
            Column("last_hour", "timestamptz", "Beginning of its last hour."),
            _PUBLISHED,
        ),
        (table,),
        f"{published}SELECT date, {_NUMBERS}, {_moment('0')} AS first_hour, {_moment('23')} AS last_hour, "  # noqa: S608
        f"is_published FROM ({_DAYS})",
        note="The same columns in every namespace: a FULL JOIN of two of them by date tells which networks "
        "have a day. VAAs without a time (1970-01-01) have no day here.",
        key=(),
        runs_on=True,
    )
    hours = LakeView(
        "calendar_hours",
        "all",
        "Every UTC hour of the days in calendar_days.",
        (
            DATE,
            Column("hour", "int", "Hour of the day, 0 to 23."),
            Column("starts_at", "timestamptz", "Beginning of the hour."),
            Column("ends_at", "timestamptz", "Its end, which is the next hour's beginning."),
            _PUBLISHED,
        ),
        (table,),
        f"{published}SELECT date, hour, {_moment('hour')} AS starts_at, {_moment('hour + 1')} AS ends_at, "  # noqa: S608
        "is_published FROM ("
        f"SELECT date, CAST(unnest(range(24)) AS INT) AS hour, is_published FROM ({_DAYS}))",
        note="The same columns in every namespace. Days are published whole: an hour of a published day "
        "without rows elsewhere is an hour in which nothing happened.",
        key=("hour",),
        runs_on=True,
    )
    return days, hours
