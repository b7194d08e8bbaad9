"""The feed of publications: applied from the beginning, it gives the published state."""

from __future__ import annotations

import shutil
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import update

from permalake import paths
from permalake.api.app import create_app
from permalake.config import Settings, load_settings
from permalake.config.networks import NetworkSettings
from permalake.domains import domain_of
from permalake.lake.published import dataset
from permalake.lake.restore import restore
from permalake.lake.state import publications, stamp
from permalake.transparency import keys
from permalake.transparency.digest import table_digest
from permalake.transparency.feed import GRACE
from permalake.transparency.manifest import hashed_tables
from permalake.transparency.signing import sign_published
from support.carried_days import CARRIED, LedgerDay, carry, history, publish
from support.lakes import (
    DAY1,
    DAY2,
    DAY3,
    NETWORK,
    OpenLake,
    analytics,
    build,
    cache,
    messages,
    pass_audit,
    put,
    stage_day,
)
from support.signed_lakes import NAME, at_home, sign

SENT = ("smr1q0qqqqq", "smr1q2qqqqq", 1000)
HISTORY = ((DAY2, 2, 5), (DAY1, 1, 4), (DAY3, 3, 2), (DAY1, 1, 7), (DAY3, 3, 0))


@pytest.fixture
def settings(tmp_path, monkeypatch):
    at_home(monkeypatch, tmp_path / "home")
    networks = {NETWORK: {"protocol": "stardust", "bech32_hrp": "smr", "path": "."}}
    return Settings(lake={"warehouse": str(tmp_path / "lake")}, networks=networks)  # type: ignore[arg-type]


@pytest.fixture(params=["signed", "unsigned"])
def built(request, settings):
    """A lake with corrections, and a day that lost its rows."""
    lake = OpenLake(settings)
    if request.param == "signed":
        keys.create_key(NAME)
    for at, day in enumerate(HISTORY):
        build(settings, lake, *day, f"run-{at}")
        sign(settings, lake)
    return lake


def pages(api, limit, **filters):
    since, found = 0, []
    while True:
        answer = api.get("/api/publications", params={"since": since, "limit": limit, **filters}).json()
        if not answer["publications"]:
            return found
        found += answer["publications"]
        since = answer["next"]


def replayed(feed):
    state = {}
    for publication in feed:
        for day in publication["days"]:
            state[publication["network"], day["date"]] = day["tables"]
    return {(day, name): said for (_, day), tables in state.items() for name, said in tables.items()}


def lost(feed):
    """Per publication the tables that lose their rows of a day, from what the feed says of rows alone."""
    state, found = {}, []
    for publication in feed:
        removed = []
        for day in publication["days"]:
            key = publication["network"], day["date"]
            if gone := sorted(state.get(key, {}).keys() - day["tables"].keys()):
                removed.append({"date": day["date"], "tables": gone})
            state[key] = day["tables"]
        found.append(removed)
    return found


def present(lake, days=(DAY1, DAY2, DAY3), *, digests):
    """Rows and digests of what is published, read table by table."""
    found = {}
    for table in hashed_tables(domain_of(NETWORK)):
        location = lake.reader.published()[NETWORK, table.name]
        for day in days:
            digest = table_digest(dataset(table, location, day, day), table)
            if digest.rows:
                hexed = digest.hex if digests else None
                found[str(day), table.name] = {"rows": digest.rows, "digest": hexed}
    return found


def test_the_feed_applied_from_the_beginning_is_the_published_state(built, settings) -> None:
    with TestClient(create_app(settings)) as api:
        feed = pages(api, 100)
        for limit in (1, 2):
            assert pages(api, limit) == feed
            assert pages(api, limit, network="nosuch") == []
        assert [one for one in feed if one["network"] == NETWORK] == feed
    numbers = [one["number"] for one in feed]
    assert numbers == sorted(set(numbers))
    state = replayed(feed)
    signed = keys.signing_key() is not None
    assert state == present(built, digests=signed)
    assert (str(DAY3), "messages") not in state
    assert [one["withdrawn"] for one in feed] == lost(feed)
    assert feed[-1]["withdrawn"] == [{"date": str(DAY3), "tables": ["messages"]}]
    assert [one["withheld"] for one in feed] == [[]] * len(HISTORY)


@pytest.fixture(params=["signed", "unsigned"])
def carried_world(request, tmp_path, monkeypatch, spark):
    """A lake with carried tables, corrections below them, and a day that was withheld."""
    at_home(monkeypatch, tmp_path / "home")
    config = tmp_path / "permalake.toml"
    config.write_text(
        f'[lake]\nwarehouse = "{tmp_path}/lake"\n[networks.{NETWORK}]\nprotocol = "stardust"\n'
        f'bech32_hrp = "smr"\npath = "{tmp_path}"\nv_byte_cost = 100\n'
    )
    monkeypatch.setenv("PERMALAKE_CONFIG", str(config))
    monkeypatch.setattr(paths, "HOME", tmp_path / "home")
    settings = load_settings()
    lake = OpenLake(settings)
    if request.param == "signed":
        keys.create_key(NAME)
    first, second, third = history(3)
    publish(settings, lake, [first, second, third], "all")
    sign(settings, lake)
    carry(spark, "carry")
    sign(settings, lake)
    publish(settings, lake, [replace(second, moves=[*second.moves, *first.moves, SENT])], "corrected")
    sign(settings, lake)
    after = LedgerDay(third.day + timedelta(days=1), third.milestone + 1, [SENT])
    with lake.builds.begin(NETWORK, third.day, after.day, "withheld") as attempt:
        wrong = replace(third, moves=[*third.moves, SENT, SENT]).rows()
        for name, rows in after.rows().items():
            put(settings, attempt, name, [*wrong[name], *rows])
        pinned = attempt.pin()
        pinned.verdict(third.day, False, ["balance_changes: adds_up: expected 7, found 5"])
        pinned.verdict(after.day, True)
        assert lake.builds.publish(pinned).withheld.keys() == {third.day}
    sign(settings, lake)
    carry(spark, "carry again")
    sign(settings, lake)
    days = [first.day + timedelta(days=at) for at in range((third.day - first.day).days + 2)]
    return settings, lake, days


def test_the_feed_gives_carried_tables_and_leaves_withheld_days(carried_world) -> None:
    settings, lake, days = carried_world
    with TestClient(create_app(settings)) as api:
        feed = pages(api, 2)
    assert [one["kind"] for one in feed].count("carry") == 2
    signed = keys.signing_key() is not None
    expected = present(lake, days, digests=signed)
    assert replayed(feed) == expected
    assert {table for _, table in expected} & set(CARRIED)
    assert all(one["withdrawn"] == [] for one in feed), "carried tables are carried again, not withdrawn"
    withheld = [(one["number"], *day.values()) for one in feed for day in one["withheld"]]
    reason = "audit failed: balance_changes: adds_up: expected 7, found 5"
    assert [told[1:] for told in withheld] == [(str(days[-2]), reason)]


def test_what_an_earlier_release_did_not_record_is_not_known(settings) -> None:
    lake = OpenLake(settings)
    build(settings, lake, DAY1, 1, 4, "first")
    with lake.database.write() as connection:
        connection.execute(update(publications).values(withdrawn=None, withheld=None))
    with TestClient(create_app(settings)) as api:
        (entry,) = pages(api, 10)
    assert (entry["withdrawn"], entry["withheld"]) == (None, None)


def test_what_is_withdrawn_survives_the_loss_of_the_catalog(settings) -> None:
    lake = OpenLake(settings)
    build(settings, lake, DAY1, 1, 4, "first")
    build(settings, lake, DAY1, 1, 0, "second")
    with TestClient(create_app(settings)) as api:
        before = pages(api, 10)
    assert before[-1]["withdrawn"]
    Path(settings.lake.warehouse, "catalog.db").unlink()
    restore(settings)
    with TestClient(create_app(settings)) as api:
        assert pages(api, 10) == before


def test_a_waiting_request_is_answered_with_the_next_publication(settings) -> None:
    lake = OpenLake(settings)
    build(settings, lake, DAY1, 1, 4, "first")
    with TestClient(create_app(settings)) as api:
        last = api.get("/api/publications").json()["next"]
        threading.Timer(0.5, build, (settings, lake, DAY2, 2, 3, "second")).start()
        began = time.monotonic()
        answer = api.get("/api/publications", params={"since": last, "wait": 25}).json()
        assert time.monotonic() - began < 20
    assert [day["date"] for one in answer["publications"] for day in one["days"]] == [str(DAY2)]
    assert answer["next"] > last


def test_publications_of_other_networks_wake_nobody_who_asked_for_one(settings) -> None:
    settings = with_testnet(settings)
    lake = OpenLake(settings)
    build(settings, lake, DAY1, 1, 4, "first")

    other = lake.begin("testnet", DAY1, DAY1, "other")
    stage_day(settings, other, DAY1, 1, 3)
    audited = pass_audit(other)

    with TestClient(create_app(settings)) as api:
        last = api.get("/api/publications").json()["next"]
        threading.Timer(0.3, lake.builds.publish, (audited,)).start()
        query = {"since": last, "network": NETWORK, "wait": 6}
        began = time.monotonic()
        answer = api.get("/api/publications", params=query).json()
        assert time.monotonic() - began >= 6
        assert answer["publications"] == []
        assert answer["next"] == last + 1, "the next request need not look at it again"
        threading.Timer(0.3, build, (settings, lake, DAY2, 2, 3, "second")).start()
        answer = api.get("/api/publications", params=query | {"wait": 25}).json()
        assert [(one["number"], one["network"]) for one in answer["publications"]] == [(last + 2, NETWORK)]


def publish_elsewhere(settings, lake, run_id):
    """Publish a day of the other network of :func:`with_testnet`."""
    attempt = lake.begin("testnet", DAY1, DAY1, run_id)
    stage_day(settings, attempt, DAY1, 1, 3)
    lake.builds.publish(pass_audit(attempt))


def with_testnet(settings):
    other = {"protocol": "stardust", "bech32_hrp": "rms", "path": "."}
    networks = {**settings.networks, "testnet": NetworkSettings.model_validate(other)}
    return settings.model_copy(update={"networks": networks})


def test_what_others_publish_before_a_day_is_signed_takes_no_digest_from_it(settings) -> None:
    settings = with_testnet(settings)
    keys.create_key(NAME)
    lake = OpenLake(settings)
    build(settings, lake, DAY1, 1, 4, "first")
    publish_elsewhere(settings, lake, "other")
    sign_published(settings, lake.database, domain_of(NETWORK), NETWORK)
    with TestClient(create_app(settings)) as api:
        assert replayed(pages(api, 10, network=NETWORK)) == present(lake, digests=True)


def test_a_day_that_was_put_back_before_it_was_signed_is_told_as_it_is(settings) -> None:
    """Its correction was never signed: the process was killed."""
    keys.create_key(NAME)
    lake = OpenLake(settings)
    build(settings, lake, DAY1, 1, 5, "first")
    sign(settings, lake)
    build(settings, lake, DAY1, 1, 7, "corrected")
    attempt = lake.begin(NETWORK, DAY1, DAY2, "put back")
    put(settings, attempt, "messages", [*messages(DAY1, 1, 5), *messages(DAY2, 2, 3)])
    put(settings, attempt, "ms_analytics", [*analytics(DAY1, 1, 5), *analytics(DAY2, 2, 3)])
    put(settings, attempt, "date_cache", [*cache(DAY1, 1, 1), *cache(DAY2, 2, 2)])
    lake.builds.publish(pass_audit(attempt))
    assert sign(settings, lake) == [(NETWORK, str(DAY2))]
    with TestClient(create_app(settings)) as api:
        feed = pages(api, 10)
    assert replayed(feed) == present(lake, digests=True)
    assert [day["date"] for day in feed[-1]["days"]] == [str(DAY1), str(DAY2)]


def test_a_day_that_is_published_again_unchanged_keeps_its_digests(settings) -> None:
    keys.create_key(NAME)
    lake = OpenLake(settings)
    for run in ("first", "again"):
        build(settings, lake, DAY1, 1, 4, run)
        sign(settings, lake)
    with TestClient(create_app(settings)) as api:
        first, again = pages(api, 10)
    assert first["days"] == again["days"]
    assert again["days"][0]["manifest"] is not None


def test_a_log_that_begins_anew_has_the_digests_of_earlier_publications(settings) -> None:
    keys.create_key(NAME)
    lake = OpenLake(settings)
    for at, day in enumerate(HISTORY):
        build(settings, lake, *day, f"run-{at}")
        sign(settings, lake)
    shutil.rmtree(Path(settings.lake.warehouse, "_log"))
    keys.KEY_FILE.unlink()
    keys.create_key("example.org/another")
    sign(settings, lake)
    with TestClient(create_app(settings)) as api:
        assert replayed(pages(api, 10)) == present(lake, digests=True)


def test_in_a_signed_lake_a_publication_is_told_when_it_is_signed(settings) -> None:
    keys.create_key(NAME)
    lake = OpenLake(settings)
    build(settings, lake, DAY1, 1, 4, "first")
    sign(settings, lake)
    with TestClient(create_app(settings)) as api:
        last = api.get("/api/publications").json()["next"]
        build(settings, lake, DAY2, 2, 3, "second")
        waiting = {"since": last, "wait": 5}
        assert api.get("/api/publications", params=waiting).json() == {"publications": [], "next": last}
        threading.Timer(0.5, sign, (settings, lake)).start()
        (told,) = api.get("/api/publications", params=waiting | {"wait": 25}).json()["publications"]
    assert replayed([told]) == present(lake, (DAY2,), digests=True)


def test_what_nobody_signs_is_told_after_a_while_without_digests(settings) -> None:
    settings = with_testnet(settings)
    keys.create_key(NAME)
    lake = OpenLake(settings)
    build(settings, lake, DAY1, 1, 4, "first")
    sign(settings, lake)
    build(settings, lake, DAY2, 2, 3, "second")
    publish_elsewhere(settings, lake, "other")
    with lake.database.write() as connection:
        connection.execute(update(publications).where(publications.c.id == 2).values(published_at=long_ago()))
    with TestClient(create_app(settings)) as api:
        _, told = pages(api, 10)
    assert replayed([told]) == present(lake, (DAY2,), digests=False)
    assert told["days"][0]["manifest"] is None


def long_ago():
    return stamp(datetime.now(UTC) - GRACE - timedelta(seconds=1))


def test_what_is_no_request_is_refused(settings) -> None:
    build(settings, OpenLake(settings), DAY1, 1, 4, "first")
    with TestClient(create_app(settings)) as api:
        for query in ("since=-1", "wait=31", "limit=0", "nosuch=1", "since=x"):
            assert api.get(f"/api/publications?{query}").status_code in (400, 422), query
