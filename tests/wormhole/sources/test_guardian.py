"""Gaps in sequences: found, asked for within limits, answers kept, what stays missing told."""

from __future__ import annotations

import base64
import datetime as dt
import gzip
import json
from pathlib import Path

import pytest

from permalake.config import Settings
from permalake.net import http
from permalake.wormhole.sources import guardian
from permalake.wormhole.sources.guardian import Gap
from permalake.wormhole.tables.sequence_gaps import gaps
from permalake_simulate.wormhole.encode_vaa import encode_body, encode_vaa
from support.explorer_server import ExplorerServer

DAY = dt.date(2024, 3, 11)
EMITTER = "ab" * 32
HASTY = http.RetryPolicy(read=0.3, whole=1.0, back_off=0.01, attempts=8, longest_pause=3, failures=1)
NOW = dt.datetime(2024, 3, 12, tzinfo=dt.UTC).timestamp()
SCHEMA = (
    "source string, origin string, claimed_id string, raw binary, fault string, document_time timestamp, "
    "indexed_at timestamp, tx_id string"
)


def vaa(sequence, day=DAY, emitter=EMITTER, chain=2, timestamp=None):
    noon = dt.datetime(day.year, day.month, day.day, 12, tzinfo=dt.UTC).timestamp()
    body = encode_body(
        timestamp=int(noon) if timestamp is None else timestamp,
        nonce=0,
        emitter_chain=chain,
        emitter_address=bytes.fromhex(emitter),
        sequence=sequence,
        consistency_level=1,
        payload=b"",
    )
    return encode_vaa(0, [], body)


@pytest.fixture(autouse=True)
def _hasty(monkeypatch):
    monkeypatch.setattr(http, "RetryPolicy", lambda: HASTY)


def settings_of(folder, server, rate=1000.0):
    section = {"path": str(folder), "guardian_url": server.url, "rate_per_second": rate}
    return Settings(lake={"warehouse": str(folder)}, wormhole=section)


def fill(settings, found, **kwargs):
    return guardian.fill(settings, settings.wormhole, found, **{"clock": lambda: NOW, **kwargs})


def test_gaps_lie_between_neighbours_of_the_days(spark) -> None:
    huge = 2**63 + 5
    before, after = DAY - dt.timedelta(1), DAY + dt.timedelta(1)
    raws = [
        *(vaa(sequence) for sequence in (1, 2, 5, 5, 105, 207)),
        vaa(0, before, "01" * 32),
        vaa(2, DAY, "01" * 32),
        vaa(4, after, "01" * 32),
        vaa(6, after, "01" * 32),
        vaa(huge, DAY, "02" * 32),
        vaa(huge + 2, DAY, "02" * 32),
        vaa(7, DAY, "03" * 32, timestamp=1),
        vaa(9, DAY, "03" * 32, timestamp=1),
        vaa(11, DAY - dt.timedelta(2), "04" * 32),
        vaa(13, DAY, "04" * 32),
        b"\x01no vaa",
    ]
    rows = [(None, None, None, bytearray(raw), None, None, None, None) for raw in raws]
    found = gaps(spark.createDataFrame(rows, SCHEMA), DAY, DAY).collect()
    assert sorted((row[0], row[2][:2], int(row[3]), int(row[4])) for row in found) == [
        (DAY, "01", 1, 1),
        (DAY, "01", 3, 3),
        (DAY, "02", huge + 1, huge + 1),
        (DAY, "ab", 3, 4),
        (DAY, "ab", 6, 104),
    ]


def test_answers_are_kept_found_or_not(tmp_path) -> None:
    found = [Gap(DAY, 2, EMITTER, 3, 7)]
    signed = {f"2/{EMITTER}/{sequence}": vaa(sequence, DAY) for sequence in (3, 6)}
    signed[f"2/{EMITTER}/4"] = vaa(4, DAY - dt.timedelta(1))
    with ExplorerServer(signed=signed, faulty=0.3, seed=1) as server:
        settings = settings_of(tmp_path, server, rate=50)
        done = fill(settings, found)
        assert (done.fault, done.news) == (None, {DAY: 2, DAY - dt.timedelta(1): 1})
        assert server.busiest() <= 50
        landed = guardian.landing(settings, settings.wormhole).paths("vaas", DAY, DAY)
        kept = [
            json.loads(one)
            for path in landed
            for one in gzip.decompress(Path(path).read_bytes()).splitlines()
        ]
        assert {base64.b64decode(one["vaa"]) for one in kept} == {signed[f"2/{EMITTER}/{n}"] for n in (3, 6)}

        asked = len(server.calls)
        left = [Gap(DAY, 2, EMITTER, 5, 5), Gap(DAY, 2, EMITTER, 7, 7)]
        assert not fill(settings, left).news
        assert len(server.calls) == asked, "not found is an answer, for a day"
        server.faulty = 0.0
        fill(settings, left, clock=lambda: NOW + 90_000)
        assert len(server.calls) == asked + 2
        fill(settings, left, clock=lambda: NOW + 180_000)
        assert len(server.calls) == asked + 2, "then for twice as long"
        server.signed[f"2/{EMITTER}/5"] = vaa(5)
        assert fill(settings, left, force=True).news == {DAY: 1}


def test_asks_are_bounded_and_short_gaps_go_first(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(guardian, "MOST_ASKS", 5)
    with ExplorerServer() as server:
        settings = settings_of(tmp_path, server)
        fill(settings, [Gap(DAY, 2, EMITTER, 10, 99), Gap(DAY, 4, EMITTER, 1, 2)])
        paths = [call[1].removeprefix("/v1/signed_vaa/") for call in server.calls]
        assert len(paths) == 5
        assert {f"4/{EMITTER}/1", f"4/{EMITTER}/2"} < set(paths)


def test_a_guardian_that_is_down_leaves_the_gaps_and_its_reason(tmp_path) -> None:
    with ExplorerServer() as server:
        server.down = "503"
        settings = settings_of(tmp_path, server)
        done = fill(settings, [Gap(DAY, 2, EMITTER, 3, 3)])
        assert done.fault == "guardian: HTTP 503"
        assert not done.news
        server.down = None
        fill(settings, [Gap(DAY, 2, EMITTER, 3, 3)])
        assert server.calls[-1][3] is None, "no answer is not kept as one"


def test_what_is_missing_is_told_by_day() -> None:
    many = [Gap(DAY, chain, EMITTER, 1, 2) for chain in range(1, 24)]
    lines = guardian.missing([*many, Gap(DAY + dt.timedelta(1), 9, EMITTER, 5, 5)])
    assert lines[DAY][0] == f"1/{EMITTER}/1..2 missing"
    assert lines[DAY][-1] == "and 6 sequences more"
    assert lines[DAY + dt.timedelta(1)] == [f"9/{EMITTER}/5 missing"]
