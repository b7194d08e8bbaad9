"""Wormhole followed live: the head has what the source has told, whatever comes when and how often."""

from __future__ import annotations

import base64
import datetime as dt
import gzip
import json
import random
import threading
import time
from contextlib import suppress

import pytest

from permalake.cli import status
from permalake.errors import ConfigError
from permalake.lake.head import Head
from permalake.lake.head_position import head_positions
from permalake.net import http
from permalake.wormhole.enrich.head_details import HeadDetails
from permalake.wormhole.sources import growing_vaas
from permalake.wormhole.sources.spy import SpyStream
from permalake.wormhole.steps.live import LIVE_TABLES
from support.explorer_server import ExplorerServer
from support.length import LONG
from support.live_wormhole import DAYS, LiveWormhole, documents, observations
from support.spy_server import SpyServer

EVENTS = (
    *("message_publication", "quorum_state"),
    *("token_transfer_payload", "asset_meta_payload", "nft_transfer_payload"),
)
DETAILS = "token_transfer_details"
HASTY = http.RetryPolicy(read=0.3, whole=1.0, back_off=0.01, attempts=12, longest_pause=3)


@pytest.fixture
def world(spark, tmp_path, monkeypatch):
    return LiveWormhole(spark, tmp_path, monkeypatch)


def arrivals(seed, parts):
    """The world's documents out of order, some twice, in so many parts."""
    chance = random.Random(seed)
    lines = documents()
    lines += chance.sample(lines, len(lines) // 5)
    chance.shuffle(lines)
    size = -(-len(lines) // parts)
    return [lines[at : at + size] for at in range(0, len(lines), size)]


def come(world, lines) -> None:
    for name in {name for name, _ in lines}:
        world.append(name, [line for file, line in lines if file == name])


def assert_all(world, namespace="wormhole_live") -> None:
    for table in (*EVENTS, "quarantine"):
        assert world.differences(table, namespace) == [], table


def test_the_head_grows_with_files_and_has_the_rows_of_days(world) -> None:
    before = set()
    for lines in arrivals(seed=1, parts=4):
        come(world, lines)
        world.follow()
        seen = world.seen()
        assert len(seen) > 50
        before |= seen
    assert_all(world)
    rows = world.rows("wormhole.message_publication_with_live")
    assert {row["provisional"] for row in rows} == {True}
    assert {row["date"] for row in rows} == set(DAYS)


OBSERVED, WAITING = "observations", "waiting_observations"
SOURCES = (OBSERVED, "wormholescan")


def named(document):
    """The message that an observation names."""
    return f"{document['emitterChain']}:{document['emitterAddr']}:{int(document['sequence']):016}"


def observed(world, namespace):
    """Rows of the observations, and what of them was refused."""
    rows = world.rows(f"{namespace}.{OBSERVED}")
    refused = [row for row in world.rows(f"{namespace}.quarantine") if row["source"] in SOURCES]
    keys = sorted((row["date"], row["reason"], row["raw"]) for row in refused)
    return sorted(map(json.dumps, rows)), keys


def test_observations_come_before_and_after_their_vaa_and_are_those_of_the_days(world) -> None:
    told = observations(seed=7)
    for number, lines in enumerate(arrivals(seed=8, parts=4)):
        come(world, lines)
        world.observe(told[number::4])
        if number == 2:
            world.observe(told[:500])
        world.follow()
        seen = {row["row_key"] for row in world.live("message_publication")}
        rows = world.live(OBSERVED)
        assert {row["row_key"] for row in rows} <= seen
        assert len({(row["row_key"], row["guardian_address"]) for row in rows}) == len(rows) > 500
        refused = {row["raw"] for row in world.live("quarantine")}
        assert {row["raw"] for row in world.live(WAITING) if row["row_key"] in seen} <= refused
    live = observed(world, "wormhole_live")
    assert len(live[1]) > 5
    assert {row["provisional"] for row in world.rows(f"wormhole.{OBSERVED}_with_live")} == {True}
    world.publish(DAYS[0])
    rows = world.rows(f"wormhole.{OBSERVED}_with_live")
    assert len(rows) == len(live[0])
    assert {row["provisional"] for row in rows if row["date"] == DAYS[0]} == {False}
    world.publish(DAYS[1], DAYS[2])
    assert not world.live(OBSERVED)
    assert not world.live(WAITING)
    built = observed(world, "wormhole")
    assert set(built[1]) <= set(live[1])
    published = {row["row_key"] for row in world.rows("wormhole.message_publication")}
    # The head had refused them before their message left it, which days do not publish at all.
    others = {named(json.loads(bytes.fromhex(raw))) for *_, raw in set(live[1]) - set(built[1])}
    assert not others & published
    assert built[0] == live[0]


def test_a_line_counts_once_it_has_its_end(world) -> None:
    (name, line), *_ = documents()[5:]
    file = world.input / name
    file.write_bytes(line[:100])
    world.follow()
    assert (world.seen(), world.live("quarantine")) == (set(), [])
    file.write_bytes(line + b"\n")
    world.follow()
    assert len(world.seen()) == 1


def test_a_published_day_takes_the_place_of_its_head(world) -> None:
    lines = documents()
    come(world, lines)
    world.follow()
    everything = world.seen()
    assert_values(world)
    counts, over = [], threading.Event()

    def read():
        while not over.is_set():
            counts.append(len(world.seen()))

    reader = threading.Thread(target=read)
    reader.start()
    world.publish(DAYS[0], valued=True)
    over.set()
    reader.join()
    details = {row["row_key"]: row for row in world.rows(f"wormhole.{DETAILS}_with_live")}
    assert {row["provisional"] for row in details.values() if row["date"] == DAYS[0]} == {False}
    assert len(details) == len(world.rows("wormhole.token_transfer_payload_with_live"))
    assert set(counts) == {len(everything)}
    assert {row["date"] for row in world.live("message_publication")} == set(DAYS[1:])
    come(world, lines[:100])
    world.follow()
    assert world.seen() == everything, "what comes again is there already"
    world.publish(DAYS[1], DAYS[2])
    world.follow()
    assert not any(world.live(name) for name in LIVE_TABLES)
    assert_all(world, "wormhole")


def test_files_that_are_cut_replaced_or_packed_are_read_again(world) -> None:
    lines = documents()
    come(world, lines[:200])
    world.follow()
    for file in list(world.input.iterdir()):
        packed = file.with_name(f"{file.name}.gz")
        packed.write_bytes(gzip.compress(file.read_bytes())[:-20])
        file.write_bytes(b"")
    world.follow()
    some = world.seen()
    assert len(some) > 100, "a gzip file that breaks off is not read"
    for name in {name for name, _ in lines}:
        text = b"".join(line + b"\n" for file, line in lines if file == name)
        (world.input / f"{name}.gz").write_bytes(gzip.compress(text))
    world.follow()
    assert len(world.seen()) > len(some)
    assert_all(world)


def assert_values(world) -> None:
    """A transfer has its day's value, or none: attestations of earlier days are not known here."""
    rows = world.live(DETAILS)
    assert len(rows) == len(world.live("token_transfer_payload"))
    unknown = {row["row_key"] for row in rows if row["notional_usd"] is None}
    assert len(unknown) < len(rows) - 20
    assert all(row["reason"] for row in rows if row["row_key"] in unknown)
    faults = [line for line in world.differences(DETAILS) if not any(key in line for key in unknown)]
    assert faults == []


def test_a_batch_is_priced_without_spark(world, monkeypatch) -> None:
    """Its transfers are few, and what is known of their tokens is kept: a job costs more than all of it."""
    group, jobs, work = "values of a head", [], HeadDetails.rows
    context = world.spark.sparkContext

    def rows(self, given):
        context.setJobGroup(group, group)
        try:
            return work(self, given)
        finally:
            context.setLocalProperty("spark.jobGroup.id", None)
            jobs.append(list(context.statusTracker().getJobIdsForGroup(group)))

    monkeypatch.setattr(HeadDetails, "rows", rows)
    come(world, documents())
    world.follow()
    assert_values(world)
    assert jobs
    assert not any(jobs)


POINTS = (
    "permalake.wormhole.steps.live.identified",
    "permalake.wormhole.steps.live.event_rows",
    "permalake.wormhole.steps.live.observation_changes",
    "permalake.lake.head.TaskFiles.complete",
    "permalake.lake.head.prepare",
    "permalake.lake.head_edit.copy_pointers",
    "permalake.lake.head_edit._change",
    "permalake.lake.head_edit.move_pointer",
    "permalake.lake.head_edit.HeadEdit.apply",
    "after",
)
KILLS = 20 if LONG else 4


class Killed(BaseException):
    """As a process ends that is killed."""


@pytest.mark.scaled
def test_killed_at_many_points_nothing_is_lost_or_twice(world, monkeypatch) -> None:
    chance = random.Random(5)
    commit = Head.commit

    def die(*_, **__):
        raise Killed

    def added(*given, **more):
        commit(*given, **more)
        raise Killed

    world.lake.ensure(world.name)
    told = observations(seed=2)
    # The last of them at short length too: what is added, and not told to the source.
    points = [*chance.sample(POINTS[:-1] * 3, KILLS - 1), "after"]
    for number, (point, lines) in enumerate(zip(points, arrivals(seed=2, parts=KILLS), strict=True)):
        come(world, lines)
        world.observe(told[number::KILLS])
        before = world.seen()
        with monkeypatch.context() as patch:
            patch.setattr(*((Head, "commit", added) if point == "after" else (point, die)))
            with pytest.raises(Killed):
                world.follow()
        assert (world.seen() == before) == (point != "after")
        if chance.random() < 0.25:
            world.follow()
    world.follow()
    assert_all(world)
    rows = world.live(OBSERVED)
    world.publish(DAYS[0], DAYS[2])
    assert sorted(map(json.dumps, rows)) == sorted(map(json.dumps, world.rows(f"wormhole.{OBSERVED}")))


def test_a_head_holds_no_more_days_than_it_may(spark, tmp_path, monkeypatch) -> None:
    world = LiveWormhole(spark, tmp_path, monkeypatch, days=1)
    for day in DAYS:
        come(world, [one for one in documents() if one[0] == f"vaas-{day}.jsonl"])
        world.follow()
        assert {row["date"] for row in world.live("message_publication")} == {day}


def test_a_list_that_fails_repeats_and_grows_is_followed(spark, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(growing_vaas, "_today", lambda: dt.date.fromisoformat(DAYS[-1]))
    monkeypatch.setattr(http, "RetryPolicy", lambda: HASTY)
    with ExplorerServer(faulty=0.2, seed=3) as server:
        world = LiveWormhole(spark, tmp_path, monkeypatch, attempts=20)
        text = world.config.read_text()
        path = next(line for line in text.splitlines() if line == f'path = "{world.input}"')
        listed = f'source = "wormholescan"\nurl = "{server.url}"\nrate_per_second = 200'
        world.config.write_text(text.replace(path, listed))
        server.largest["vaas"] = 100
        told = sorted(observations(seed=4), key=lambda one: one["indexedAt"])
        for number, lines in enumerate(arrivals(seed=4, parts=3), start=1):
            server.vaas += [json.loads(line) for _, line in lines]
            if number > 1:  # Before that, it has no such route.
                server.observations = told[: number * len(told) // 3]
            world.follow()
            asked = len(server.calls)
            world.follow()
            assert len(server.calls) - asked < 60
        assert_all(world)
        seen = world.seen()
        held = {(row["row_key"], row["guardian_address"]) for row in world.live(OBSERVED)}
        pairs = {pair for one in told if (pair := (named(one), one["guardianAddr"][2:]))[0] in seen}
        assert held <= pairs
        assert len(held) > 0.95 * len(pairs)
        assert sum(fault is not None for *_, fault in server.calls) > 5


def test_only_a_source_that_grows_can_be_followed(world) -> None:
    text = world.config.read_text()
    source = '[wormhole]\nsource = "permalake"\nurl = "https://example.org"\npublisher_keys = ["x"]'
    world.config.write_text(text.replace("[wormhole]", source))
    with pytest.raises(ConfigError, match=r"wormhole\.source: permalake has whole days alone"):
        world.follow()


def test_a_spy_is_followed_and_its_gaps_are_told(spark, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(growing_vaas, "_today", lambda: dt.date.fromisoformat(DAYS[-1]))
    lines = documents()
    vaas = list(raw_vaas(lines))
    random.Random(6).shuffle(vaas)
    parts = [vaas[at::4] for at in range(4)]
    awaited, heard = [], SpyStream.heard

    def patient(stream, most):
        count = awaited.pop() if awaited else 0
        ends = time.monotonic() + 120
        while len(heard(stream, count)) < count:
            assert time.monotonic() < ends
            time.sleep(0.05)
        return heard(stream, most)

    monkeypatch.setattr(SpyStream, "heard", patient)
    with SpyServer() as server:
        world = LiveWormhole(spark, tmp_path, monkeypatch, spy=f'"{server.address}"', attempts=30)
        come(world, lines)

        def hear(some, *, twice=False):
            begun, awaited[:] = server.subscriptions, [len(some)]
            ended = threading.Thread(target=world.follow)
            ended.start()
            server.wait(begun + 1)
            server.say(some[: len(some) // 2])
            if twice:
                server.reset()
                server.wait(begun + 2)
            server.say(some[len(some) // 2 :])
            ended.join()

        hear(parts[0])
        first = world.seen()
        assert len(first) > 30
        assert gaps(world) == []
        hear([*parts[0], *parts[1]], twice=True)
        second = world.seen()
        assert len(second) > len(first)
        assert len(gaps(world)) >= 1
        with monkeypatch.context() as patch:

            def die(*_, **__):
                raise Killed

            patch.setattr("permalake.lake.head.prepare", die)

            def be_killed():
                with pytest.raises(Killed):
                    world.follow()

            begun, awaited[:] = server.subscriptions, [len(parts[2])]
            ended = threading.Thread(target=be_killed)
            ended.start()
            server.wait(begun + 1)
            server.say(parts[2])
            ended.join()
        assert world.seen() == second
        hear(parts[3])
        assert len(world.seen()) > len(second)
        told = gaps(world)
        status.command(config=str(world.config))
        assert capsys.readouterr().out.count("wormhole: nobody listened") == len(told) >= 2
    world.publish(DAYS[-1])
    lost = [
        one for one in world.differences("message_publication", "wormhole", DAYS[-1:]) if "missing" in one
    ]
    assert lost == [], "the day's build has what nobody heard"


def raw_vaas(lines):
    for _, line in lines:
        with suppress(ValueError, KeyError, TypeError):
            yield base64.b64decode(json.loads(line)["vaa"], validate=True)


def gaps(world):
    return list(head_positions(world.lake.database)["wormhole"].gaps)
