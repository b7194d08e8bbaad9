"""The synthetic days that operators' tests build: one, or ten in ``make long``."""

from __future__ import annotations

import csv
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from support.length import LONG

FIRST = date(2022, 9, 28)
DAYS = 10 if LONG else 1
LAST = FIRST + timedelta(DAYS - 1)


def lose_prices(file: Path, day: date) -> Callable[[], int]:
    """Take the quotes out that serve a day; returns what puts them back."""
    whole = file.read_text("utf-8")
    rows = list(csv.DictReader(whole.splitlines()))
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    first, end = midnight - timedelta(hours=12), midnight + timedelta(hours=36)
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, rows[0])
        writer.writeheader()
        writer.writerows(row for row in rows if not first <= moment(row["quoted_at"]) < end)
    return lambda: file.write_text(whole, "utf-8")


def moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)
