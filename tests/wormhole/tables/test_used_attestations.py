"""Which days become stale when another attestation of a token is the latest."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from permalake.wormhole.contracts import WORMHOLE_TABLES
from permalake.wormhole.tables.carried_state import attested_until
from permalake.wormhole.tables.used_attestations import ATTESTED, BEFORE, OUTDATED, OUTDATED_DAY
from support.wormhole_queries import ENGINES, found

ONE, TWO, THREE = (dt.date(2024, 3, day) for day in (1, 2, 3))
SAME, CHANGED, GONE, UNUSED = ("aa", "bb", "cc", "dd")
ATTESTED_ROW = "date date, origin_chain int, origin_address string, decimals int, symbol string, name string"


def attestations(*rows):
    names = ("date", "origin_chain", "origin_address", "decimals", "symbol", "name")
    schema = pa.schema([WORMHOLE_TABLES["attested_tokens"].arrow.field(name) for name in names])
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_day_is_stale_only_where_a_value_that_it_used_has_changed(spark, engine):
    moved = [
        (TWO, "2:a:1", SAME, "150000000", "1.5", "S", "Same"),
        (TWO, "2:a:2", CHANGED, "100", "1", "C", "Changed"),
        (THREE, "2:a:3", GONE, "5", "5", "G", "Gone"),
        (ONE, "2:a:4", SAME, "100000000", "1", "S", "Same"),
    ]
    given = {
        "token_transfer_payload": [
            {"date": day, "row_key": key, "origin_chain": 2, "origin_address": token, "amount": raw}
            for day, key, token, raw, *_ in moved
        ],
        "token_transfer_details": [
            {"date": day, "row_key": key, "amount": amount, "origin_symbol": symbol, "origin_name": name}
            for day, key, _, _, amount, symbol, name in moved
        ],
    }
    known = {
        ATTESTED: attestations(
            (ONE, 2, SAME, 8, "S", "Same"),
            (TWO, 2, SAME, 8, "S", "Same"),
            (TWO, 2, CHANGED, 3, "C", "Changed"),
            (TWO, 2, UNUSED, 3, "U", "Unused"),
        ),
        BEFORE: attestations((THREE, 2, GONE, 0, "G", "Gone"), (THREE, 2, UNUSED, 0, "U", "Unused")),
    }
    rows = found(engine, spark, OUTDATED, OUTDATED_DAY, given, known)
    assert sorted((row["date"], row["token"]) for row in rows) == [(TWO, "2:bb"), (THREE, "2:cc")]
    right = attestations(
        (ONE, 2, SAME, 8, "S", "Same"), (TWO, 2, SAME, 8, "S", "Same"), (TWO, 2, CHANGED, 2, "C", "Changed")
    )
    known = {ATTESTED: right, BEFORE: attestations()}
    assert found(engine, spark, OUTDATED, OUTDATED_DAY, given, known) == []


def test_attestations_of_published_days_count_whether_they_are_carried_or_not(spark):
    """Days after the last sound carried one are read from the attestations themselves."""
    key = "2:" + "e" * 64 + ":000000000000000"
    tables = {
        "attested_tokens": spark.createDataFrame(
            [
                (ONE, 2, SAME, 8, "S", "Same", ONE, f"{key}1"),
                (TWO, 2, SAME, 9, "wrong", "carried before a correction", TWO, f"{key}2"),
            ],
            f"{ATTESTED_ROW}, attested_on date, row_key string",
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
