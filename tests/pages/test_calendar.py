"""The calendar: which state a day is in, and that anyone can read the page."""

from __future__ import annotations

from datetime import UTC, date, datetime
from html.parser import HTMLParser

import pytest

from permalake.lake import DayStatus
from permalake.pages.calendar import calendar_page, day_page
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
def test_the_state_that_matters_most_is_shown(facts, stores, expected):
    assert state_of(day(28, **facts), stores).name == expected


def test_days_between_published_ones_are_missing_and_others_are_nothing():
    (september,), earlier = months([day(26), day(29)])
    assert earlier == 0
    cells = {cell.date.day: cell.state.name for week in september.weeks for cell in week if cell}
    assert (cells[25], cells[26], cells[27], cells[28], cells[29], cells[30]) == (
        *("none", "published", "missing", "missing", "published", "none"),
    )
    assert len(cells) == 30


def test_earlier_months_are_counted_only():
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
def test_a_square_says_how_many_rows_or_what_is_wrong(facts, expected):
    one = day(28, **facts)
    (month,), _ = months([one])
    assert expected in [cell.tooltip for week in month.weeks for cell in week if cell]
    assert f'title="{expected}"' in calendar_page({"shimmer": [one]}, {}, [])


class Outline(HTMLParser):
    """What assistive technology goes by."""

    def __init__(self, page):
        super().__init__()
        self.seen = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))

    def having(self, tag):
        return [attributes for name, attributes in self.seen if name == tag]


def test_the_page_reads_without_sight_without_scripts_and_without_a_network():
    troubled = day(27, error="audit failed: messages: <key_unique>")
    own = {"shimmer": [troubled, day(28)]}
    page = calendar_page(own, {}, freshness(own["shimmer"]))
    outline = Outline(page)
    assert not outline.having("script")
    assert not outline.having("link")
    assert not outline.having("img")
    assert outline.having("html")[0]["lang"] == "en"
    assert len(outline.having("caption")) == len(outline.having("table")) - 1  # the list has a heading
    assert all(head.get("scope") for head in outline.having("th"))
    assert {"2022-09-27", "2022-09-28"} <= {
        link["href"].partition("date=")[2] for link in outline.having("a")
    }
    assert "&lt;key_unique&gt;" in page
    # The state is told by mark and word, not by colour alone.
    assert '<span class="hidden">failed</span>' in page
    assert "✗" in page


def test_a_day_tells_rows_stores_and_what_is_wrong():
    one = day(
        28, rows={"messages": 81}, quarantined=2, notes=["keys are unchecked"], stores={"cassandra": None}
    )
    page = day_page(one, ["cassandra"], "audit/shimmer/x/index.html")
    for text in (
        "messages",
        "81",
        "keys are unchecked",
        "In cassandra",
        "not yet",
        "audit/shimmer/x/index.html",
    ):
        assert text in page


def test_freshness_counts_from_the_end_of_the_latest_published_day_that_is_over():
    days = [day(28), day(29, published=None, error="refused"), day(30)]
    (fresh,) = freshness(days, datetime(2022, 9, 29, 6, tzinfo=UTC))
    assert (fresh.latest, fresh.seconds) == (date(2022, 9, 28), 6 * 3600)
    assert freshness(days, datetime(2022, 9, 28, 6, tzinfo=UTC)) == []
