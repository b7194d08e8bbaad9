"""The calendar: which state a day is in, and what its square says."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from permalake.lake import DayStatus
from permalake.pages.days import freshness, months, state_of

AT = "2022-10-01T03:00:00.000000+00:00"


def day(number, **facts):
    whole = {"built": AT, "audited": "passed", "published": AT} | facts
    return DayStatus("shimmer", date(2022, 9, number), whole.pop("built"), **whole)


@pytest.mark.parametrize(
    ("facts", "stores", "expected"),
    [
        ({}, [], "published"),
        ({"stores": {"cassandra": AT}}, ["cassandra"], "published"),
        ({"stores": {"cassandra": None}}, ["cassandra"], "waiting"),
        ({}, ["cassandra"], "waiting"),
        ({"gaps": ["milestones 3 missing"]}, [], "gap"),
        ({"stale": "a price changed", "gaps": ["x"]}, [], "stale"),
        ({"error": "audit failed: x", "audited": "failed"}, [], "failed"),
        ({"published": None}, [], "audited"),
        ({"published": None, "audited": None}, [], "built"),
    ],
)
def test_the_state_that_matters_most_is_shown(facts, stores, expected) -> None:
    assert state_of(day(28, **facts), stores).name == expected


def test_days_between_published_ones_are_missing_and_others_are_nothing() -> None:
    (september,), earlier = months([day(26), day(29)])
    assert earlier == 0
    cells = {cell.date.day: cell.state.name for week in september.weeks for cell in week if cell}
    assert (cells[25], cells[26], cells[27], cells[28], cells[29], cells[30]) == (
        *("none", "published", "missing", "missing", "published", "none"),
    )
    assert len(cells) == 30


def test_earlier_months_are_counted_only() -> None:
    days = [DayStatus("shimmer", date(2022, month, 5), AT, "passed", AT) for month in (3, 8, 9)]
    (newest,), earlier = months(days, most=1)
    assert (newest.title, earlier) == ("September 2022", 2)
    assert newest.weeks[0][3].state.name == "missing", "between days of months that are not shown"


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"rows": {"messages": 1200, "tags": 34}}, "2022-09-28: published; 1,234 rows"),
        ({"quarantined": 2, "rows": {"tags": 1}}, "2022-09-28: published; 1 rows; 2 in quarantine"),
        ({"stale": "a price\u202e changed"}, "2022-09-28: stale; a price[U+202E] changed"),
        ({"gaps": ["milestone 3 missing", "x"]}, "2022-09-28: gap; milestone 3 missing; x"),
        ({"error": "A" * 65_536}, f"2022-09-28: failed; {'A' * 200}… (65,536 characters)"),
    ],
)
def test_a_square_says_how_many_rows_or_what_is_wrong(facts, expected) -> None:
    one = day(28, **facts)
    (month,), _ = months([one])
    assert expected in [cell.tooltip for week in month.weeks for cell in week if cell]


def test_freshness_counts_from_the_end_of_the_latest_published_day_that_is_over() -> None:
    filled = {"rows": {"messages": 1}}
    days = [day(28, **filled), day(29, published=None, error="refused"), day(30, **filled)]
    (fresh,) = freshness(days, datetime(2022, 9, 29, 6, tzinfo=UTC))
    assert (fresh.latest, fresh.seconds) == (date(2022, 9, 28), 6 * 3600)
    assert freshness(days, datetime(2022, 9, 28, 6, tzinfo=UTC)) == []
    days[1] = day(29)
    (fresh,) = freshness(days, datetime(2022, 9, 30, 6, tzinfo=UTC))
    assert fresh.latest == date(2022, 9, 28), "a day that was published without rows makes nothing fresh"
