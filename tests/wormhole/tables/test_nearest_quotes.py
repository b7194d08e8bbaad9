"""The quote nearest in time, from the file provider's CSV."""

import datetime as dt
from decimal import Decimal

import pytest

from permalake.errors import ConfigError
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
    found = nearest(wanted, quotes, 12).orderBy("origin_chain", "at").collect()
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
