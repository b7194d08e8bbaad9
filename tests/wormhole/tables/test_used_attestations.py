"""Which days become stale when another attestation of a token is the latest."""

from __future__ import annotations

import datetime as dt

from permalake.wormhole.tables.carried_state import attested_until
from permalake.wormhole.tables.used_attestations import outdated_days

ONE, TWO, THREE = (dt.date(2024, 3, day) for day in (1, 2, 3))
SAME, CHANGED, GONE, UNUSED = ("aa", "bb", "cc", "dd")
ATTESTED = "date date, origin_chain int, origin_address string, decimals int, symbol string, name string"


def test_a_day_is_stale_only_where_a_value_that_it_used_has_changed(spark):
    transfers = spark.createDataFrame(
        [
            (TWO, "2:a:1", 2, SAME, "150000000"),
            (TWO, "2:a:2", 2, CHANGED, "100"),
            (THREE, "2:a:3", 2, GONE, "5"),
            (ONE, "2:a:4", 2, SAME, "100000000"),
        ],
        "date date, row_key string, origin_chain int, origin_address string, amount string",
    )
    details = spark.createDataFrame(
        [
            (TWO, "2:a:1", "1.5", "S", "Same"),
            (TWO, "2:a:2", "1", "C", "Changed"),
            (THREE, "2:a:3", "5", "G", "Gone"),
            (ONE, "2:a:4", "1", "S", "Same"),
        ],
        "date date, row_key string, amount string, origin_symbol string, origin_name string",
    )
    attested = spark.createDataFrame(
        [
            (ONE, 2, SAME, 8, "S", "Same"),
            (TWO, 2, SAME, 8, "S", "Same"),
            (TWO, 2, CHANGED, 3, "C", "Changed"),
            (TWO, 2, UNUSED, 3, "U", "Unused"),
        ],
        ATTESTED,
    )
    then = spark.createDataFrame(
        [(THREE, 2, GONE, 0, "G", "Gone"), (THREE, 2, UNUSED, 0, "U", "Unused")], ATTESTED
    )
    assert outdated_days(transfers, details, attested, then) == {
        TWO: "the attestation of token 2:bb has changed",
        THREE: "the attestation of token 2:cc has changed",
    }
    right = attested.replace(3, 2, "decimals")
    assert outdated_days(transfers, details, right, then.limit(0)) == {}


def test_attestations_of_published_days_count_whether_they_are_carried_or_not(spark):
    """Days after the last sound carried one are read from the attestations themselves."""
    key = "2:" + "e" * 64 + ":000000000000000"
    tables = {
        "attested_tokens": spark.createDataFrame(
            [
                (ONE, 2, SAME, 8, "S", "Same", ONE, f"{key}1"),
                (TWO, 2, SAME, 9, "wrong", "carried before a correction", TWO, f"{key}2"),
            ],
            f"{ATTESTED}, attested_on date, row_key string",
        ),
        "asset_meta_payload": spark.createDataFrame(
            [
                (TWO, f"{key}3", 2, CHANGED, 6, "C", "Changed"),
                (THREE, f"{key}4", 2, CHANGED, 7, "C", "Again"),
            ],
            "date date, row_key string, token_chain int, token_address string, decimals int, symbol string, "
            "name string",
        ),
        "message_publication": spark.createDataFrame(
            [
                (day, f"{key}{number}", dt.datetime(2024, 3, day.day))
                for number, day in ((3, TWO), (4, THREE))
            ],
            "date date, row_key string, timestamp timestamp",
        ),
    }
    rows = attested_until(tables.__getitem__, THREE, TWO).collect()
    assert {(row["date"], row["origin_address"]): row["decimals"] for row in rows} == {
        (TWO, SAME): 8,
        (TWO, CHANGED): 6,
        (THREE, SAME): 8,
        (THREE, CHANGED): 7,
    }
