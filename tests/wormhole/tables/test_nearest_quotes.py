"""The quote nearest in time, from the file provider's CSV."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from permalake.config.services import PricesSettings
from permalake.errors import ConfigError
from permalake.wormhole.enrich.price_service import PriceCache
from permalake.wormhole.enrich.providers.file import FilePrices
from permalake.wormhole.tables.nearest_quotes import QUOTE
from support.quotes import LOCAL, nearest_rows, stored_quotes, wants

TOKEN = "ab" * 32
CSV = f"""quoted_at,chain,token_address,symbol,coingecko_id,decimals,price_usd
2024-03-10T06:00:00-06:00,2,{TOKEN.upper()},A,a,18,1.5e-8
2024-03-10T14:00:00Z,2,{TOKEN},A,a,18,2
2024-03-10T14:00:00Z,4,{TOKEN},A,a,18,4
2024-03-10T14:30:00Z,2,{TOKEN},A,a,18,none
"""


def at(hour, minute=0, second=0, day=10):
    return dt.datetime(2024, 3, day, hour, minute, second, tzinfo=dt.UTC)


def test_the_nearest_quote_within_the_window(tmp_path) -> None:
    (tmp_path / "quotes.csv").write_text(CSV)
    (tmp_path / "README.md").write_text("# Quotes\n")
    moments = [
        at(0),
        at(0, second=1),
        at(12),
        at(13),
        at(13, second=1),
        at(2, day=11),
        at(2, second=1, day=11),
    ]
    rows = [(2, TOKEN, moment) for moment in moments] + [(4, TOKEN, at(13)), (5, TOKEN, at(13))]
    wanted = wants(*rows)
    found = nearest_rows(wanted, FilePrices(tmp_path, 12).quotes(LOCAL, wanted), PricesSettings())
    low, high = (at(12), Decimal("1.5e-8")), (at(14), Decimal(2))
    assert [
        (row["at"], row["quote_time"], row["price_usd"]) for row in found if row["origin_chain"] == 2
    ] == [
        (at(0), *low),
        (at(0, second=1), *low),
        (at(12), *low),
        (at(13), *low),
        (at(13, second=1), *high),
        (at(2, day=11), *high),
    ]
    assert [(row["origin_chain"], row["price_usd"], row["provider"]) for row in found][6:] == [(4, 4, "file")]


def test_a_file_that_is_no_price_history_is_refused(tmp_path) -> None:
    wanted = wants()
    (tmp_path / "quotes.csv").write_text("time,price\n")
    with pytest.raises(ConfigError, match=r"prices\.path: .* lacks the column quoted_at"):
        FilePrices(tmp_path / "quotes.csv", 12).quotes(LOCAL, wanted)
    with pytest.raises(ConfigError, match=r"prices\.path: .* does not exist"):
        FilePrices(tmp_path / "none.csv", 12).quotes(LOCAL, wanted)
    assert FilePrices(None, 12).quotes(LOCAL, wanted).num_rows == 0


def chosen(quotes, hours, **rules):
    """(price, contradicting price, reason) by hour of the want; quotes: (hour, price, confidence)."""
    rows = [(2, TOKEN, "x", at(hour), Decimal(price), confidence, None) for hour, price, confidence in quotes]
    offered = pa.Table.from_pylist([dict(zip(QUOTE.names, row, strict=True)) for row in rows], QUOTE)
    wanted = wants(*((2, TOKEN, at(hour)) for hour in hours))
    return {
        row["at"].hour: (
            int(row["price_usd"]),
            row["contradicting_price_usd"] and int(row["contradicting_price_usd"]),
            row["reason"],
        )
        for row in nearest_rows(wanted, offered, PricesSettings(**rules))
    }


def test_a_quote_far_from_both_its_neighbours_is_an_outlier() -> None:
    quotes = [(1, 10, None), (2, 11, 0.99), (3, 5_000, None), (4, 12, None), (6, 900, None), (7, 905, None)]
    quotes += [(9, 1, None), (10, 1_000, 0.2), (11, 2, None)]
    hours = (1, 2, 3, 4, 6, 7, 9, 10)
    assert chosen(quotes, hours) == {
        1: (10, None, None),
        2: (11, None, None),
        3: (5_000, 11, None),
        4: (12, 5_000, None),
        6: (900, None, None),
        7: (905, None, None),
        9: (1, None, None),
        10: (1_000, 1, "low_confidence"),
    }
    excluded = chosen(quotes, hours, exclude_outliers=True, max_factor=1_000, min_confidence=0.1)
    assert {hour: row for hour, row in excluded.items() if row[1:] != (None, None)} == {}
    excluded = chosen(quotes, hours, exclude_outliers=True)
    assert excluded[3] == (5_000, 11, "outlier")
    # Neighbours count as far as the window of the want reaches.
    assert chosen([(1, 10, None), (5, 5_000, None)], (7,), window_hours=3) == {7: (5_000, None, None)}
    assert chosen([(1, 10, None), (5, 5_000, None)], (7,), window_hours=6) == {7: (5_000, 10, None)}


def test_what_is_no_price_is_left_out_with_a_count(tmp_path) -> None:
    prices = ("-1", "0", "NaN", "inf", "1e13", "1e40", "", "0.0000000000000000001", "7")
    lines = [f"2024-03-10T10:0{n}:00Z,2,{TOKEN},{price}" for n, price in enumerate(prices)]
    lines += [f"2024-03-10T10:08:00Z,2,{TOKEN},-5"]  # beside a good one of the same moment
    (tmp_path / "quotes.csv").write_text("\n".join(["quoted_at,chain,token_address,price_usd", *lines]))
    notes = []
    cache = PriceCache(lambda *_: stored_quotes(), lambda _: 0, lambda _: None, notes.append)
    wanted = wants((2, TOKEN, at(10)))
    rows = FilePrices(tmp_path, 12, cache).quotes(LOCAL, wanted).to_pylist()
    assert [row["price_usd"] for row in rows] == [7]
    assert notes == ["prices: file: 9 quotes left out, no price above 0 and below 10^12"]


@pytest.mark.parametrize(("anew", "price"), [(False, 2), (True, 3)])
def test_a_stored_quote_counts_until_the_file_is_taken_anew(tmp_path, anew, price) -> None:
    (tmp_path / "quotes.csv").write_text(
        f"quoted_at,chain,token_address,price_usd\n2024-03-10T10:00:00Z,2,{TOKEN},3\n"
        f"2024-03-10T11:00:00Z,2,{TOKEN},4\n2024-03-10T12:00:00Z,2,{TOKEN},-1\n"
    )
    stored = stored_quotes(
        (2, TOKEN, "file", at(10), Decimal(2)),
        (2, TOKEN, "file", at(11), Decimal(-1)),  # stored before it was known for no price
        (2, TOKEN, "file", at(12), Decimal(5)),
        (2, TOKEN, "coingecko", at(10), Decimal(9)),
    )
    notes = []
    cache = PriceCache(lambda *_: stored, lambda _: 0, lambda _: None, notes.append)
    wanted = wants((2, TOKEN, at(10)))
    quotes = FilePrices(tmp_path, 12, cache, anew).quotes(LOCAL, wanted).sort_by("quote_time").to_pylist()
    assert [row["price_usd"] for row in quotes] == [price, 4, 5]
    note = (
        "prices: file: quotes that differ from the stored ones: 1; the stored ones count, --force takes the "
        "file's: "
        f"token 2:{TOKEN} at 2024-03-10T10:00:00Z: 2 is stored, the file has 3"
    )
    assert notes[1:] == ([] if anew else [note])


class Counting:
    """Runs queries here, and counts what is read."""

    def __init__(self):
        self.reads = 0

    def results(self, *given, **options):
        return LOCAL.results(*given, **options)

    def read(self, schema, parts, work):
        self.reads += 1
        return LOCAL.read(schema, parts, work)


def test_files_are_read_for_the_days_of_the_wants_and_again_once_they_change(tmp_path) -> None:
    file = tmp_path / "quotes.csv"
    lines = [f"2024-03-{day:02}T10:00:00Z,2,{TOKEN},{day}" for day in range(1, 29)]
    file.write_text("\n".join(["quoted_at,chain,token_address,price_usd", *lines, ""]))
    prices, runner = FilePrices(tmp_path, 12), Counting()

    def quotes(*moments):
        rows = prices.quotes(runner, wants(*((2, TOKEN, moment) for moment in moments)))
        return sorted(int(price) for price in rows["price_usd"].to_pylist())

    assert quotes(at(9)) == quotes(at(11, day=10)) == [10]
    assert runner.reads == 1
    assert quotes(at(20)) == [10]
    assert quotes(at(22), at(1, day=11)) == [10, 11]
    reads = runner.reads
    assert quotes(at(9), at(9, day=11)) == [10, 11]
    assert runner.reads == reads, "the days that were read before suffice"
    with file.open("a") as text:
        text.write(f"2024-03-10T10:30:00Z,2,{TOKEN},77\n")
    assert quotes(at(9)) == [10, 77]
    assert runner.reads == reads + 1
