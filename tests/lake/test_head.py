"""The live head: rows of days that are not published yet, which every reader sees once."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from sqlalchemy import select

from permalake.domains import domain_of
from permalake.errors import PermalakeError
from permalake.iota.contracts import IOTA_TABLES
from permalake.iota.contracts.unreferenced import HEAD_TABLES, UNREFERENCED_MESSAGES
from permalake.lake import head_edit, leases, publish
from permalake.lake.catalog import copy_pointers, open_table
from permalake.lake.head import Head, rows_among
from permalake.lake.head_chores import FAN, merge, sweep
from permalake.lake.maintenance.needed import Root, needed
from permalake.lake.maintenance.storage import listing
from permalake.lake.state import LIVE, PUBLISHED, pointers
from permalake.pipeline.maintenance import housekeeping
from support.lakes import DAY1, DAY2, DAY3, NETWORK, OpenLake, messages, pass_audit, put, stage_day

TABLES = ("messages", "ms_analytics", "milestones")
ABOVE = UNREFERENCED_MESSAGES.name
VIEW = f"SELECT message_id, provisional, date FROM {NETWORK}.messages_with_live"


@pytest.fixture
def head(settings, lake):
    lake.ensure(NETWORK)
    contracts = {name: IOTA_TABLES[name] for name in TABLES} | HEAD_TABLES
    opened = Head(settings, lake.database, NETWORK, contracts)
    opened.ensure()
    return opened


def written(head, day, milestone, count):
    rows = pa.Table.from_pylist(messages(day, milestone, count), schema=IOTA_TABLES["messages"].arrow)
    return head.write("messages", rows)


def add(head, day, milestone, count, **more):
    return head.commit(written(head, day, milestone, count), **more)


def seen(lake):
    """How many messages readers see by day and provenance; no message twice."""
    rows = lake.query(VIEW).to_pylist()
    ids = [row["message_id"] for row in rows]
    assert len(ids) == len(set(ids))
    return Counter((row["date"], row["provisional"]) for row in rows)


def staged(settings, lake, *days):
    """An attempt over the days that passed its audit; milestone 10 n + 1 with five messages on the n-th."""
    attempt = lake.begin(NETWORK, days[0], days[-1], f"run of {days[0]}")
    for number, day in enumerate(days):
        stage_day(settings, attempt, day, 10 * number + 1, 5)
    put(
        settings,
        attempt,
        "messages",
        [row for n, day in enumerate(days) for row in messages(day, 10 * n + 1, 5)],
    )
    return pass_audit(attempt)


def test_rows_among_are_those_of_a_filter(head) -> None:
    for milestone in (1, 4, 7):
        add(head, DAY1, milestone, 3)
    rows = head.rows("messages")
    every = rows.to_table()
    assert len(rows.files) == 3
    for chosen in (
        [every["message_id"][4]],
        [every["message_id"][0], every["message_id"][8]],
        ["absent"],
        [],
    ):
        ids = pa.array(chosen, pa.string())
        found = rows_among(rows, "message_id", ids)
        assert found.equals(every.filter(pc.is_in(every["message_id"], value_set=ids)))
    assert len(rows_among(head.rows("milestones"), "message_id", pa.array(["absent"]))) == 0


def test_without_a_head_the_views_are_the_published_days(settings, lake) -> None:
    lake.builds.publish(staged(settings, lake, DAY1))
    assert seen(lake) == {(DAY1, False): 5}


def test_what_is_added_is_seen_at_once_and_apart(settings, lake, head) -> None:
    lake.builds.publish(staged(settings, lake, DAY1))
    add(head, DAY2, 11, 3)
    add(head, DAY2, 12, 4)
    assert seen(lake) == {(DAY1, False): 5, (DAY2, True): 7}
    assert head.greatest("messages", "milestone_index") == 12
    assert lake.query(f"SELECT count(*) AS n FROM {NETWORK}_live.messages").to_pylist() == [{"n": 7}]
    assert lake.query(f"SELECT count(*) AS n FROM {NETWORK}.messages").to_pylist() == [{"n": 5}]


def test_heads_are_no_networks_and_no_states_of_the_past(settings, lake, head) -> None:
    done = lake.builds.publish(staged(settings, lake, DAY1))
    add(head, DAY2, 11, 3)
    listed = lake.query("SHOW TABLES").to_pylist()
    assert {row["table"] for row in listed if row["network"] == f"{NETWORK}_live"} == {*TABLES, ABOVE}
    assert {network for network, _ in lake.reader.published()} == {NETWORK}
    then = datetime.fromisoformat(done.published_at)
    assert lake.query(f"SELECT count(*) AS n FROM {NETWORK}.messages_with_live", then).to_pylist() == [
        {"n": 5}
    ]


def test_a_publication_takes_its_days_out_of_the_head(settings, lake, head) -> None:
    for day, milestone in ((DAY1, 1), (DAY2, 11), (DAY3, 21)):
        add(head, day, milestone, 5)
    lake.builds.publish(staged(settings, lake, DAY1, DAY2))
    assert seen(lake) == {(DAY1, False): 5, (DAY2, False): 5, (DAY3, True): 5}
    assert head.greatest("messages", "milestone_index") == 21


def above(head, day, count):
    """Files of messages that no milestone references, which ``day`` or a later one may."""
    rows = [
        {"message_id": one["message_id"], "version": 2, "message": b"", "est_milestone_index": 1, "date": day}
        | {"seen_at": datetime.combine(day, datetime.min.time(), UTC)}
        for one in messages(day, 90, count)
    ]
    return head.write(ABOVE, pa.Table.from_pylist(rows, schema=UNREFERENCED_MESSAGES.arrow))


def days_above(head):
    return set(head.rows(ABOVE).to_table()["date"].to_pylist())


def test_what_no_milestone_references_leaves_with_its_day_or_a_later_one(settings, lake, head) -> None:
    for day in (DAY1, DAY2, DAY3):
        head.commit(above(head, day, 2))
    add(head, DAY1, 21, 5)
    lake.builds.publish(staged(settings, lake, DAY2))
    assert days_above(head) == {DAY3}
    assert seen(lake) == {(DAY1, True): 5, (DAY2, False): 5}, "a day that is not published stays"
    head.commit([*above(head, DAY1, 2), *above(head, DAY2, 2)])
    assert days_above(head) == {DAY3}, "a published day may have it"


def publish_during_commit(lake, pinned, monkeypatch):
    """Publish days once the head's next batch is prepared, before it is committed."""
    prepared = head_edit.prepare

    def overtaken(*given, **more):
        monkeypatch.undo()
        made = prepared(*given, **more)
        lake.builds.publish(pinned)
        return made

    monkeypatch.setattr("permalake.lake.head.prepare", overtaken)


def test_what_no_milestone_references_is_not_added_beside_a_day_published_meanwhile(
    settings, lake, head, monkeypatch
) -> None:
    pinned = staged(settings, lake, DAY2)
    publish_during_commit(lake, pinned, monkeypatch)
    head.commit(above(head, DAY1, 2))
    assert days_above(head) == set()


def test_a_day_that_is_withheld_stays_in_the_head(settings, lake, head) -> None:
    add(head, DAY1, 1, 5)
    attempt = lake.begin(NETWORK, DAY1, DAY1, "fails")
    stage_day(settings, attempt, DAY1, 1, 5)
    pinned = attempt.pin()
    pinned.verdict(DAY1, False, ["a rule"])
    assert lake.builds.publish(pinned).id is None
    assert seen(lake) == {(DAY1, True): 5}


def test_a_day_without_rows_that_is_not_published_stays_in_the_head(settings, lake, head) -> None:
    for day, milestone in ((DAY1, 1), (DAY2, 11)):
        add(head, day, milestone, 5)
    attempt = lake.begin(NETWORK, DAY1, DAY3, "half")
    stage_day(settings, attempt, DAY1, 1, 5)
    assert lake.builds.publish(pass_audit(attempt)).days == (DAY1,)
    assert seen(lake) == {(DAY1, False): 5, (DAY2, True): 5}


def test_days_that_are_published_are_not_added_any_more(settings, lake, head) -> None:
    lake.builds.publish(staged(settings, lake, DAY1))
    files = [*written(head, DAY1, 7, 3), *written(head, DAY2, 11, 4)]
    assert head.commit(files) == {DAY1}
    assert seen(lake) == {(DAY1, False): 5, (DAY2, True): 4}


def test_a_day_published_while_a_batch_is_added_is_seen_once(settings, lake, head, monkeypatch) -> None:
    pinned = staged(settings, lake, DAY1)
    publish_during_commit(lake, pinned, monkeypatch)
    assert add(head, DAY1, 1, 5) == {DAY1}
    assert seen(lake) == {(DAY1, False): 5}


def test_a_batch_added_while_its_day_is_published_is_seen_once(settings, lake, head, monkeypatch) -> None:
    pinned = staged(settings, lake, DAY1)
    prepared = head_edit.without_days

    def overtaken(*given):
        monkeypatch.undo()
        made = prepared(*given)
        add(head, DAY1, 1, 5)
        return made

    monkeypatch.setattr(publish, "without_days", overtaken)
    lake.builds.publish(pinned)
    assert seen(lake) == {(DAY1, False): 5}


def test_readers_never_miss_a_message_while_days_are_published(settings, lake, head) -> None:
    for day, milestone in ((DAY1, 1), (DAY2, 11)):
        add(head, day, milestone, 5)
    attempts = [staged(settings, OpenLake(settings), DAY1)]
    counts, over = [], threading.Event()

    def read():
        own = OpenLake(settings)
        is_last = False
        while not is_last:
            is_last = over.is_set()  # Each reads at least once, however late its thread begins.
            counts.append(sum(seen(own).values()))

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for pinned in attempts:
        lake.builds.publish(pinned)
    over.set()
    for reader in readers:
        reader.join()
    assert set(counts) == {10}
    assert seen(lake) == {(DAY1, False): 5, (DAY2, True): 5}


def test_a_damaged_head_is_dropped_and_keeps_no_day_from_readers(settings, lake, head) -> None:
    add(head, DAY1, 1, 5)
    add(head, DAY2, 11, 5)
    Path(head.locations()["messages"]).unlink()
    lake.builds.publish(staged(settings, lake, DAY1))
    assert seen(lake) == {(DAY1, False): 5}
    head.ensure()
    add(head, DAY2, 11, 5)
    assert seen(lake) == {(DAY1, False): 5, (DAY2, True): 5}


def test_old_days_leave_the_head(head, lake) -> None:
    for day, milestone in ((DAY1, 1), (DAY2, 11)):
        add(head, day, milestone, 5)
    files = [*written(head, DAY1, 2, 3), *written(head, DAY3, 21, 4)]
    assert head.commit(files, oldest=DAY2) == {DAY1}
    assert seen(lake) == {(DAY2, True): 5, (DAY3, True): 4}


def test_many_small_files_become_few_with_the_same_rows(head, lake) -> None:
    for number in range(FAN + 1):
        add(head, DAY1, number + 1, 2)
    before = lake.query(f"SELECT * FROM {NETWORK}_live.messages ORDER BY message_id").to_pylist()
    assert merge(head) == FAN + 1
    assert [file.record_count for file in head.files("messages")] == [2 * FAN + 2]
    assert lake.query(f"SELECT * FROM {NETWORK}_live.messages ORDER BY message_id").to_pylist() == before
    assert merge(head) == 0


def test_what_nobody_needs_is_swept_away(settings, head, lake, monkeypatch) -> None:
    for number in range(FAN):
        add(head, DAY1, number + 1, 2)
    written(head, DAY1, 99, 2)  # of a run that was killed before it was added
    merge(head)
    place = f"{settings.lake.warehouse}/{head.namespace}/messages"
    many = len(listing(place))
    assert sweep(head) == 0
    monkeypatch.setattr("permalake.lake.head_chores.KEPT", timedelta(0))
    assert sweep(head) > 2 * FAN
    assert len(listing(place)) < many - 2 * FAN
    assert seen(lake) == {(DAY1, True): 2 * FAN}
    add(head, DAY1, 200, 1)
    assert seen(lake) == {(DAY1, True): 2 * FAN + 1}


def test_a_state_stays_for_its_time_after_it_was_replaced_however_old_it_is(head, monkeypatch) -> None:
    for module in ("head_chores", "head_edit"):
        monkeypatch.setattr(f"permalake.lake.{module}.KEPT", timedelta(seconds=1.5))
    monkeypatch.setattr(head_edit, "_MANY_SNAPSHOTS", 1)
    add(head, DAY1, 1, 2)
    add(head, DAY1, 2, 2)
    time.sleep(1.6)
    old = head.locations()["messages"]
    every_file = {file.file_path for file in head.files("messages")}
    paths = {Path(path) for path in needed([Root("messages", old)]).paths["messages"]}
    head.commit(written(head, DAY1, 3, 1), {"messages": every_file})
    sweep(head)
    assert {Path(old), *map(Path, every_file)} <= paths
    assert [str(path) for path in paths if not path.exists()] == []
    assert len(open_table(head.locations()["messages"]).metadata.snapshots) == 2
    time.sleep(1.6)
    sweep(head)
    assert [str(path) for path in paths if path.exists()] == []
    add(head, DAY1, 4, 1)
    assert len(open_table(head.locations()["messages"]).metadata.snapshots) == 2


def test_maintenance_sweeps_a_head_that_nobody_follows(settings, head, lake, monkeypatch, tmp_path) -> None:
    def swept(**more):
        done = housekeeping(settings, domain_of, [NETWORK], "maintain", **more)
        return next(one.removed for one in done if one.name == head.namespace)

    monkeypatch.setattr("permalake.audit.docs.root", lambda: tmp_path / "audit")
    written(head, DAY1, 98, 2)  # of a run that was killed before it was added
    add(head, DAY1, 1, 2)
    assert swept() == 0, "young files stay"
    monkeypatch.setattr("permalake.lake.head_chores.KEPT", timedelta(0))
    with leases.alone(lake.database, NETWORK, leases.LIVE, "one"):
        assert swept() == 0, "who follows the network sweeps it"
    would = swept(dry_run=True)
    assert would > 0
    assert swept() == would
    assert swept() == 0
    assert seen(lake) == {(DAY1, True): 2}
    lake.builds.publish(staged(settings, lake, DAY1))
    assert swept() > 0
    assert seen(lake) == {(DAY1, False): 5}


@pytest.mark.parametrize("seed", range(5))
def test_killed_anywhere_a_batch_is_added_whole_or_not_at_all(seed, head, lake, monkeypatch) -> None:
    add(head, DAY1, 1, 2)
    chance = random.Random(seed)
    names = ("copy_pointers", "open_catalog", "_change", "move_pointer", "locations")
    with monkeypatch.context() as patch:
        patch.setattr(
            head_edit, chance.choice(names), lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        with pytest.raises(KeyboardInterrupt):
            add(head, DAY1, 2, 3)
    assert seen(lake) == {(DAY1, True): 2}
    add(head, DAY1, 2, 3)
    assert seen(lake) == {(DAY1, True): 5}


def test_one_run_at_a_time_follows_a_network(lake, head) -> None:
    refused = pytest.raises(PermalakeError, match=f"{NETWORK} is being followed live by run one")
    with leases.alone(lake.database, NETWORK, leases.LIVE, "one"), refused:
        leases.take(lake.database, NETWORK, DAY1, DAY1, run_id="two", kind=leases.LIVE)


def test_a_run_that_lost_the_network_to_another_adds_nothing(lake, head) -> None:
    head.holder = "asleep"
    with leases.alone(lake.database, NETWORK, leases.LIVE, "asleep"):
        add(head, DAY1, 1, 2)
        leases.release(lake.database, NETWORK, "asleep")  # as a lease lapses
        refused = pytest.raises(leases.LeaseLostError, match=f"{NETWORK}: another run follows it by now")
        with leases.alone(lake.database, NETWORK, leases.LIVE, "awake"), refused:
            add(head, DAY1, 2, 3)
    assert seen(lake) == {(DAY1, True): 2}


def test_what_a_killed_run_has_prepared_goes_with_the_next_run(settings, lake, head) -> None:
    with lake.database.write() as connection:
        copy_pointers(connection, head._private, head.namespace, head.locations())
    Head(settings, lake.database, NETWORK, head.contracts).ensure()
    with lake.database.read() as connection:
        left = set(connection.execute(select(pointers.c.catalog_name)).scalars())
    assert left == {PUBLISHED, LIVE}
