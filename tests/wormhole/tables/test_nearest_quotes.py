"""The quote nearest in time, from the file provider's CSV."""

import datetime as dt
from decimal import Decimal

import pytest

from permalake.config import PricesSettings
from permalake.errors import ConfigError
from permalake.wormhole.enrich.price_cache import LakeCache
from permalake.wormhole.enrich.providers.file import FilePrices
from permalake.wormhole.tables.nearest_quotes import nearest

TOKEN = "ab" * 32
CSV = f"""quoted_at,chain,token_address,symbol,coingecko_id,decimals,price_usd
2024-03-10T06:00:00-06:00,2,{TOKEN.upper()},A,a,18,1.5e-8
2024-03-10T14:00:00Z,2,{TOKEN},A,a,18,2
2024-03-10T14:00:00Z,4,{TOKEN},A,a,18,4
2024-03-10T14:30:00Z,2,{TOKEN},A,a,18,none
"""


def at(hour, minute=0, second=0, day=10):
    return dt.datetime(2024, 3, day, hour, minute, second)


def test_the_nearest_quote_within_the_window(spark, tmp_path):
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
    wanted = spark.createDataFrame(rows, "origin_chain int, origin_address string, at timestamp")
    quotes = FilePrices(tmp_path, 12).quotes(spark, wanted)
    found = nearest(wanted, quotes, PricesSettings()).orderBy("origin_chain", "at").collect()
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


def test_a_file_that_is_no_price_history_is_refused(spark, tmp_path):
    wanted = spark.createDataFrame([], "origin_chain int, origin_address string, at timestamp")
    (tmp_path / "quotes.csv").write_text("time,price\n")
    with pytest.raises(ConfigError, match=r"prices\.path: .* lacks the column quoted_at"):
        FilePrices(tmp_path / "quotes.csv", 12).quotes(spark, wanted)
    with pytest.raises(ConfigError, match=r"prices\.path: .* does not exist"):
        FilePrices(tmp_path / "none.csv", 12).quotes(spark, wanted)
    assert FilePrices(None, 12).quotes(spark, wanted).count() == 0


QUOTES = (
    "origin_chain int, origin_address string, provider string, quote_time timestamp, "
    "price_usd decimal(38,18), confidence double"
)
WANTS = "origin_chain int, origin_address string, at timestamp"


def chosen(spark, quotes, wants, **rules):
    """(price, contradicting price, reason) by hour of the want; quotes: (hour, price, confidence)."""
    rows = [(2, TOKEN, "x", at(hour), Decimal(price), confidence) for hour, price, confidence in quotes]
    wanted = spark.createDataFrame([(2, TOKEN, at(hour)) for hour in wants], WANTS)
    frame = nearest(wanted, spark.createDataFrame(rows, QUOTES), PricesSettings(**rules))
    return {
        row["at"].hour: (
            int(row["price_usd"]),
            row["contradicting_price_usd"] and int(row["contradicting_price_usd"]),
            row["reason"],
        )
        for row in frame.collect()
    }


def test_a_quote_far_from_both_its_neighbours_is_an_outlier(spark):
    quotes = [(1, 10, None), (2, 11, 0.99), (3, 5_000, None), (4, 12, None), (6, 900, None), (7, 905, None)]
    quotes += [(9, 1, None), (10, 1_000, 0.2), (11, 2, None)]
    wants = (1, 2, 3, 4, 6, 7, 9, 10)
    assert chosen(spark, quotes, wants) == {
        1: (10, None, None),
        2: (11, None, None),
        3: (5_000, 11, None),
        4: (12, 5_000, None),
        6: (900, None, None),
        7: (905, None, None),
        9: (1, None, None),
        10: (1_000, 1, "low_confidence"),
    }
    excluded = chosen(spark, quotes, wants, exclude_outliers=True, max_factor=1_000, min_confidence=0.1)
    assert {hour: row for hour, row in excluded.items() if row[1:] != (None, None)} == {}
    excluded = chosen(spark, quotes, wants, exclude_outliers=True)
    assert excluded[3] == (5_000, 11, "outlier")
    # Neighbours count as far as the window of the want reaches.
    assert chosen(spark, [(1, 10, None), (5, 5_000, None)], (7,), window_hours=3) == {7: (5_000, None, None)}
    assert chosen(spark, [(1, 10, None), (5, 5_000, None)], (7,), window_hours=6) == {7: (5_000, 10, None)}


def test_what_is_no_price_is_left_out_with_a_count(spark, tmp_path):
    prices = ("-1", "0", "NaN", "inf", "1e13", "1e40", "", "0.0000000000000000001", "7")
    lines = [f"2024-03-10T10:0{n}:00Z,2,{TOKEN},{price}" for n, price in enumerate(prices)]
    lines += [f"2024-03-10T10:08:00Z,2,{TOKEN},-5"]  # beside a good one of the same moment
    (tmp_path / "quotes.csv").write_text("\n".join(["quoted_at,chain,token_address,price_usd", *lines]))
    notes = []
    stored = spark.createDataFrame([], QUOTES + ", date date")
    cache = LakeCache(lambda _: stored, lambda _: 0, lambda _: None, notes.append)
    wanted = spark.createDataFrame([(2, TOKEN, at(10))], WANTS)
    rows = FilePrices(tmp_path, 12, cache).quotes(spark, wanted).collect()
    assert [row["price_usd"] for row in rows] == [7]
    assert notes == ["prices: file: 9 quotes left out, no price above 0 and below 10^12"]


@pytest.mark.parametrize(("anew", "price"), [(False, 2), (True, 3)])
def test_a_stored_quote_counts_until_the_file_is_taken_anew(spark, tmp_path, anew, price):
    (tmp_path / "quotes.csv").write_text(
        f"quoted_at,chain,token_address,price_usd\n2024-03-10T10:00:00Z,2,{TOKEN},3\n"
        f"2024-03-10T11:00:00Z,2,{TOKEN},4\n2024-03-10T12:00:00Z,2,{TOKEN},-1\n"
    )
    day = at(0).date()
    rows = [
        (2, TOKEN, "file", at(10), Decimal(2), None, day),
        (2, TOKEN, "file", at(11), Decimal(-1), None, day),  # stored before it was known for no price
        (2, TOKEN, "file", at(12), Decimal(5), None, day),
        (2, TOKEN, "coingecko", at(10), Decimal(9), None, day),
    ]
    stored = spark.createDataFrame(rows, QUOTES + ", date date")
    notes = []
    cache = LakeCache(lambda _: stored, lambda _: 0, lambda _: None, notes.append)
    wanted = spark.createDataFrame([(2, TOKEN, at(10))], WANTS)
    quotes = FilePrices(tmp_path, 12, cache, anew).quotes(spark, wanted).orderBy("quote_time").collect()
    assert [row["price_usd"] for row in quotes] == [price, 4, 5]
    note = (
        "prices: file: quotes that differ from the stored ones: 1; the stored ones count, --force takes the "
        "file's: "
        f"token 2:{TOKEN} at 2024-03-10T10:00:00Z: 2 is stored, the file has 3"
    )
    assert notes[1:] == ([] if anew else [note])
