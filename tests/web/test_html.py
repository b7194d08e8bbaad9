"""Text from chains on pages."""

from __future__ import annotations

from decimal import Decimal

import pytest

from permalake.sanitize import LONGEST_TEXT, shown
from permalake.web.charts import COLUMNS, Flow, bars, sankey
from permalake.web.lineage import Stage, lineage
from permalake.web.numbers import CoinUnit, amount, coins, dollars, formatted, short, size, worth
from permalake.web.timeline import TimelineBar, duration, waterfall


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("a\x00b", "a[U+0000]b"),
        ("\x1b[31mred", "[U+001B][31mred"),
        ("\u202egnp", "[U+202E]gnp"),
        ("a\u200fb", "a[U+200F]b"),
        ("a\u2066b", "a[U+2066]b"),
        ("\ud800", "[U+D800]"),
        ("line\nnext", "line\nnext"),
        ("שלום", "שלום"),
    ],
)
def test_marks_stand_for_what_cannot_be_seen(text, expected) -> None:
    assert shown(text) == expected


def test_long_text_is_cut_and_says_so() -> None:
    assert shown("A" * 65_536) == "A" * LONGEST_TEXT + "… (65,536 characters)"


def test_marks_do_not_fill_a_page() -> None:
    assert shown("\u202e" * 65_536) == "[U+202E]" * (LONGEST_TEXT // 8) + "… (65,536 characters)"


def test_numbers() -> None:
    assert [short(n) for n in (None, 0, 7, 12.34, 1234, "999950000", Decimal("4.1e23"))] == [
        "–", "0", "7", "12.3", "1.23 k", "1000 M", "4.10e+23",
    ]  # fmt: skip
    assert (dollars("-1500"), dollars("2.5"), dollars(None)) == ("−$1.50 k", "$2.50", "–")
    assert amount("1234567.5") == "1,234,567.5"
    assert [size(n) for n in (12, 1234, None)] == ["12 B", "1.23 kB", "–"]


def test_charts_escape_names_and_have_no_inline_style() -> None:
    hostile = '<script>"&'
    drawn = sankey([Flow(hostile, "b", 2.0), Flow("c", "b", 1.0)], label=dollars, title=hostile)
    drawn += bars(["2024-01-01"], {hostile: [1.0], "none": [None]}, label=short, parts=True, title=hostile)
    assert "<script" not in drawn
    assert "style=" not in drawn
    assert "&lt;script&gt;" in drawn


def test_a_year_is_drawn_in_few_columns_of_means() -> None:
    days = [f"day {at}" for at in range(365)]
    series = {name: [float(at), None, *[2.0] * 363] for at, name in enumerate("abcde")}
    drawn = bars(days, series, label=short, parts=True, title="t")
    assert drawn.count("<title>") == 73 <= COLUMNS
    assert "<title>day 0 to day 4, mean of 5 days\na: 1.50\n" in drawn, "unknown days do not count"
    assert len(drawn) < 20_000


def test_differences_are_drawn_below_zero() -> None:
    drawn = bars(["a", "b"], {"s": [-30.0, 10.0]}, label=short, parts=False, title="t")
    ticks = [part.split("<")[0] for part in drawn.split('text-anchor="end">')[1:]]
    assert ticks == ["-30", "-20", "-10", "0", "10"]
    first, second = (part.split("V") for part in drawn.split('d="M')[1].split('"')[0].split("M"))
    zero = float(first[0].split()[1])
    assert float(second[0].split()[1]) == zero
    assert float(second[1]) < zero < float(first[1])
    assert float(first[1]) - zero == pytest.approx(3 * (zero - float(second[1])), abs=0.3)


def test_ribbons_leave_and_reach_bars_of_their_size() -> None:
    drawn = sankey([Flow("a", "x", 3.0), Flow("a", "y", 1.0)], label=short, title="t")
    heights = [float(part.split('"')[0]) for part in drawn.split('height="')[1:]]
    left, *right = heights
    assert left == pytest.approx(sum(right), abs=0.2)
    assert right[0] == pytest.approx(3 * right[1], abs=0.3)


def test_durations() -> None:
    told = [duration(seconds) for seconds in (0.04, 9.94, 42.4, 185, 7620)]
    assert told == ["0.0 s", "9.9 s", "42 s", "3 min 05 s", "2 h 07 min"]


def test_pictures_of_runs_and_days_escape_their_text() -> None:
    hostile = '<script>\u202e"&'
    drawn = waterfall([TimelineBar(hostile, 0, 1)], title=hostile)
    drawn += lineage([Stage(hostile, hostile * 20), Stage("b", "", hostile)], title=hostile)
    assert "<script" not in drawn
    assert "style=" not in drawn
    assert "\u202e" not in drawn
    assert waterfall([], title="none").startswith("<svg")


def test_a_gap_stays_a_gap_and_counts_have_whole_ticks() -> None:
    drawn = bars(["a", "b", "c"], {"s": [1.0, None, 2.0]}, label=short, parts=False, title="t", whole=True)
    ticks = [part.split("<")[0] for part in drawn.split('text-anchor="end">')[1:]]
    assert ticks == ["0", "1", "2"]
    assert "<title>b\ns: no figure</title>" in drawn
    assert drawn.split('d="M')[1].count("V") == 2
    middles = [float(part.split('"')[0]) for part in drawn.split('<text class="soft" x="')[4:]]
    lines = [float(part.split()[0]) for part in drawn.split('d="M')[1].split('"')[0].split("M")]
    assert middles[0] == pytest.approx(lines[0], abs=0.2), "labels stand under their bars"


def test_a_sum_says_how_much_it_covers() -> None:
    assert worth(0, 10, None) == "10 transfers, none has a price"
    assert worth(142, 157, "400000000") == "142 of 157 transfers valued: $400 M"
    assert worth(1, 1, "2.5") == "1 transfer worth $2.50"
    assert worth(0, 0, None) == "no transfers"


def test_amounts_are_told_in_coins() -> None:
    smr = CoinUnit("SMR", 6)
    assert coins("97738659308", smr) == "97,738.659308 SMR"
    assert [coins(n, smr, sign=True) for n in (-1, 0, 1)] == [
        "−0.000001 SMR",
        "0.000000 SMR",
        "+0.000001 SMR",
    ]
    assert formatted(97738659308.0, "tokens", smr) == "97.7 k SMR"
    assert coins(None, smr) == "–"
