"""A lake whose catalog is a real PostgreSQL."""

from __future__ import annotations

import multiprocessing
import shutil
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import datetime, timedelta

import pytest
from sqlalchemy import func, insert, select

import permalake.lake.state
from permalake.config import Settings
from permalake.domains import domain_of
from permalake.errors import PermalakeError
from permalake.lake import Carries
from permalake.lake import leases as leasing
from permalake.lake.advisory_locks import AdvisoryLock
from permalake.lake.database import Database
from permalake.lake.restore import restore
from permalake.lake.state import publications
from permalake.transparency import keys
from permalake.transparency.feed import ready
from permalake.transparency.signing import signed_lake
from permalake.transparency.verify import verify
from support import lake_processes
from support.lakes import DAY1, DAY2, DAY3, NETWORK, OpenLake, build, stage_day, state
from support.postgres_server import postgres
from support.signed_lakes import NAME, at_home, sign, table_of

spawn = multiprocessing.get_context("spawn")
PASSWORD = "q7Zs3cr3tQ7z"


@pytest.fixture(scope="module")
def server():
    with postgres(PASSWORD, ("lake", "empty", "clocks", "writers", "signed", "turns")) as running:
        yield running


def settings_of(tmp_path, uri):
    return Settings(lake={"warehouse": str(tmp_path / "warehouse"), "catalog": uri})


def test_days_are_built_and_a_lost_catalog_is_restored(server, tmp_path) -> None:
    verified = {"sslmode": "verify-full", "sslrootcert": str(server.certificate)}
    settings = settings_of(tmp_path, server.uri("lake", **verified).replace("+psycopg2", ""))
    lake = OpenLake(settings)
    build(settings, lake, DAY1, 1, 5, "a")
    build(settings, lake, DAY2, 2, 7, "b")
    lost = settings_of(tmp_path, server.uri("empty", **verified))
    with pytest.raises(PermalakeError, match="the catalog is empty, but the warehouse"):
        OpenLake(lost)
    (done,) = restore(lost)
    assert str(done) == "shimmer: 2 publications, 2 days, 3 tables"
    again = OpenLake(lost)
    assert state(again) == {DAY1: (5, 5), DAY2: (7, 7)}
    build(lost, again, DAY1, 1, 6, "c")
    assert state(again) == {DAY1: (6, 6), DAY2: (7, 7)}
    shutil.rmtree(tmp_path / "warehouse")
    with pytest.raises(PermalakeError, match="does not hold the lake"):
        OpenLake(lost)


def test_days_are_published_while_others_are_signed_and_told_when_they_are(
    server, tmp_path, monkeypatch
) -> None:
    at_home(monkeypatch, tmp_path / "home")
    keys.create_key(NAME)
    settings = settings_of(tmp_path, server.uri("signed", sslmode="require"))
    lake = OpenLake(settings)
    with lake.database.write() as connection:
        AdvisoryLock.SIGNATURE.take(connection)
        build(settings, lake, DAY1, 1, 5, "a")
    assert sign(settings, lake) == [(NETWORK, str(DAY1))]
    build(settings, lake, DAY2, 2, 7, "b")
    with lake.database.read() as connection:
        rows = connection.execute(select(publications).order_by(publications.c.id)).mappings().all()
        assert [(row["id"], row["signed"]) for row in rows] == [(1, 1), (2, None)]
        assert ready(connection, rows) == rows[:1]
        assert ready(connection, rows, "b") == rows
    copy, key = signed_lake(settings, lake.database, domain_of)
    assert verify(copy, table_of, key=key).days == {NETWORK: 2}


def test_leases_go_by_the_clock_of_the_database(server, tmp_path, monkeypatch) -> None:
    class Ahead(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(seconds=130)

    lake = OpenLake(settings_of(tmp_path, server.uri("clocks", sslmode="require")))
    lake.begin(NETWORK, DAY1, DAY1, "first")
    lake.leave()
    for module in (leasing, permalake.lake.state):
        monkeypatch.setattr(module, "datetime", Ahead, raising=False)
    with pytest.raises(PermalakeError, match="is being built by run first"):
        lake.begin(NETWORK, DAY1, DAY1, "second")


def test_what_is_read_at_once_is_of_one_moment(server) -> None:
    """A day that was published between two statements was neither in the head nor among the published."""
    database = Database(server.uri("lake", sslmode="require"))
    counting = select(func.count()).select_from(permalake.lake.state.leases)
    lease = {"network": "moment", "start": DAY1, "end": DAY1, "run_id": "run", "taken_at": "", "beat_at": ""}
    with database.read() as reading:
        before = reading.execute(counting).scalar()
        with database.write() as writing:
            writing.execute(insert(permalake.lake.state.leases).values(**lease))
        assert reading.execute(counting).scalar() == before
    with database.read() as reading:
        assert reading.execute(counting).scalar() == before + 1


def test_whoever_changes_several_days_waits_for_the_networks_turn(server, tmp_path, monkeypatch) -> None:
    """A mark beside a beginning was lost; two that changed days in different orders waited without end."""
    settings = settings_of(tmp_path, server.uri("turns", sslmode="require"))
    lake = OpenLake(settings)
    for number, day in enumerate((DAY1, DAY2), start=1):
        build(settings, lake, day, number, 5, f"run {day}")
    staged = lake.begin(NETWORK, DAY3, DAY3, "third")
    stage_day(settings, staged, DAY3, 3, 5)
    with Carries(settings, lake.database, domain_of).begin(NETWORK, "carry") as carried:
        monkeypatch.setattr(leasing, "take", lambda *_, **__: None)  # It waits for the turn too.
        changes = {
            "mark": lambda: lake.builds.mark_stale(NETWORK, [DAY1], "late"),
            "begin": lambda: OpenLake(settings).begin(NETWORK, DAY2, DAY2, "again"),
            "pin": staged.pin,
            "quarantine": lambda: staged.quarantine(lambda _: None),
            "carry": carried.publish,
        }
        with ThreadPoolExecutor(len(changes)) as pool:
            with lake.database.write() as connection:
                leasing.lock_network(connection, NETWORK)
                futures = {pool.submit(change): name for name, change in changes.items()}
                assert {futures[future] for future in wait(futures, timeout=2).done} == set()
            for future in futures:
                future.result(timeout=30)


@pytest.mark.long
def test_two_processes_never_write_into_a_store_at_once(server) -> None:
    """PostgreSQL lets both look for the other's lease at once; the later one has to wait for the row."""
    uri, rounds = server.uri("writers", sslmode="require"), 25
    Database(uri)
    barrier, told = spawn.Barrier(2), spawn.Queue()
    writers = [
        spawn.Process(target=lake_processes.write_into_a_store, args=(uri, barrier, rounds, told))
        for _ in range(2)
    ]
    for writer in writers:
        writer.start()
    turns = [told.get(timeout=120) for _ in range(2 * rounds)]
    for writer in writers:
        writer.join(timeout=60)
    assert [fault for *_, fault in turns if fault] == []
    for number in range(rounds):
        first, second = sorted((begun, ended) for of, begun, ended, _ in turns if of == number)
        assert first[1] <= second[0], number


def test_a_wrong_password_is_an_error_that_does_not_show_it(server, tmp_path) -> None:
    uri = server.uri("lake", sslmode="require").replace(PASSWORD, "wr0ngs3cr3t")
    with pytest.raises(Exception, match="authentication failed") as error:
        OpenLake(settings_of(tmp_path, uri))
    assert "wr0ngs3cr3t" not in str(error.value)
