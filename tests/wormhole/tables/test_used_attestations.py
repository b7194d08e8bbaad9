"""Which days become stale when another attestation of a token is the latest."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa

from permalake.wormhole.contracts import WORMHOLE_TABLES
from permalake.wormhole.enrich.attestations import attested_records
from permalake.wormhole.tables.used_attestations import ATTESTED, BEFORE, OUTDATED, OUTDATED_DAY
from support.quotes import LOCAL
from support.wormhole_queries import query_rows

ONE, TWO, THREE = (dt.date(2024, 3, day) for day in (1, 2, 3))
SAME, CHANGED, GONE, UNUSED = ("aa", "bb", "cc", "dd")


def attestations(*rows):
    names = ("date", "origin_chain", "origin_address", "decimals", "symbol", "name")
    schema = pa.schema([WORMHOLE_TABLES["attested_tokens"].arrow.field(name) for name in names])
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema)


def test_a_day_is_stale_only_where_a_value_that_it_used_has_changed() -> None:
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
    rows = query_rows(OUTDATED, OUTDATED_DAY, given, known)
    assert sorted((row["date"], row["token"]) for row in rows) == [(TWO, "2:bb"), (THREE, "2:cc")]
    right = attestations(
        (ONE, 2, SAME, 8, "S", "Same"), (TWO, 2, SAME, 8, "S", "Same"), (TWO, 2, CHANGED, 2, "C", "Changed")
    )
    known = {ATTESTED: right, BEFORE: attestations()}
    assert query_rows(OUTDATED, OUTDATED_DAY, given, known) == []


def test_what_an_application_moves_makes_a_day_stale_too() -> None:
    """A message that states its decimals has no other amount with another attestation, but another symbol."""
    moved = [
        (ONE, "2:a:1", CHANGED, 0, "100", None, (None, None, None)),  # attested once its day was built
        (TWO, "2:a:2", SAME, 0, "150", 2, ("1.5", "S", "Same")),
        (TWO, "2:a:3", CHANGED, 1, "100", None, (None, None, None)),  # the token bridge counts it
        (THREE, "2:a:4", GONE, 0, "150", 2, ("1.5", "G", "Gone")),
    ]
    given = {
        "application_transfers": [
            {"date": day, "row_key": key, "token_chain": 2, "token_address": token, "amount": raw}
            | {"in_token_transfers": bridged, "amount_decimals": decimals}
            for day, key, token, bridged, raw, decimals, _ in moved
        ],
        "application_transfer_details": [
            {"date": day, "row_key": key, "amount": amount, "token_symbol": symbol, "token_name": name}
            for day, key, *_, (amount, symbol, name) in moved
        ],
    }
    now = attestations(
        *((day, 2, CHANGED, 2, "C", "Changed") for day in (ONE, TWO, THREE)),
        *((day, 2, SAME, 8, "S", "Same") for day in (ONE, TWO, THREE)),
    )
    rows = query_rows(OUTDATED, OUTDATED_DAY, given, {ATTESTED: now, BEFORE: attestations()})
    assert rows == [{"date": ONE, "token": f"2:{CHANGED}"}]
    before = attestations((THREE, 2, GONE, 2, "G", "Gone"))
    rows = query_rows(OUTDATED, OUTDATED_DAY, given, {ATTESTED: now, BEFORE: before})
    assert sorted((row["date"], row["token"]) for row in rows) == [(ONE, "2:bb"), (THREE, "2:cc")]


class Days:
    """Tables by name, as lists of rows."""

    def __init__(self, **tables):
        self.tables = tables

    def rows(self, name, first, last):
        rows = [row for row in self.tables[name] if first <= row["date"] <= last]
        return pa.Table.from_pylist(rows, WORMHOLE_TABLES[name].nullable)

    def latest_before(self, name, day):
        return max((row["date"] for row in self.tables[name] if row["date"] < day), default=None)


KEY = "2:" + "e" * 64 + ":000000000000000"


def attested(day, token, decimals, number, name="S"):
    return {"date": day, "origin_chain": 2, "origin_address": token, "decimals": decimals, "symbol": name} | {
        **{"name": name, "attested_on": day, "row_key": f"{KEY}{number}"}
    }


def meta(day, token, decimals, number, hour=0, chain=2):
    key = f"{chain}{KEY[1:]}{number}"
    return (
        {"date": day, "row_key": key, "token_chain": 2, "token_address": token, "decimals": decimals}
        | {"symbol": f"S{number}", "name": "n"},
        {"date": day, "row_key": key, "timestamp": dt.datetime(2024, 3, day.day, hour, tzinfo=dt.UTC)},
    )


def records(state, *metas, start, end, sound_before):
    days = Days(
        attested_tokens=state,
        asset_meta_payload=[row for row, _ in metas],
        message_publication=[row for _, row in metas],
    )
    rows = attested_records(LOCAL, days, start, end, sound_before).to_pylist()
    return {(row["date"], row["origin_address"]): row for row in rows}


def test_attestations_of_published_days_count_whether_they_are_carried_or_not() -> None:
    """Days after the last sound carried one are read from the attestations themselves."""
    state = [attested(ONE, SAME, 8, 1), attested(TWO, SAME, 9, 2, "carried before a correction")]
    metas = [meta(TWO, CHANGED, 6, 3), meta(THREE, CHANGED, 7, 4)]
    rows = records(state, *metas, start=TWO, end=THREE, sound_before=TWO)
    assert {key: (row["decimals"], row["attested_on"]) for key, row in rows.items()} == {
        (TWO, SAME): (8, ONE),
        (TWO, CHANGED): (6, TWO),
        (THREE, SAME): (8, ONE),
        (THREE, CHANGED): (7, THREE),
    }
    later = records(state, *metas, start=THREE, end=THREE, sound_before=TWO)
    assert {key: row["decimals"] for key, row in later.items()} == {(THREE, SAME): 8, (THREE, CHANGED): 7}


def test_the_latest_attestation_of_a_day_counts_and_only_that_of_the_token_s_own_chain() -> None:
    metas = [meta(ONE, SAME, 1, 1, hour=5), meta(ONE, SAME, 2, 2, hour=9), meta(ONE, SAME, 3, 3, hour=9)]
    metas += [meta(ONE, SAME, 4, 4, hour=8), meta(ONE, SAME, 5, 5, hour=10, chain=4)]
    metas += [meta(TWO, GONE, 6, 6)]
    rows = records([], *metas, start=ONE, end=TWO, sound_before=ONE)
    assert {key: (row["decimals"], row["symbol"]) for key, row in rows.items()} == {
        (ONE, SAME): (3, "S3"),
        (TWO, SAME): (3, "S3"),
        (TWO, GONE): (6, "S6"),
    }
