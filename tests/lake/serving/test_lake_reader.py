"""The lake as a server reads it: one state per request, pruned files, locked connections."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import duckdb
import pytest

from permalake.domains import domain_of
from permalake.lake.serving import EVERYTHING, LakeQuery, LakeReader, PoolBusyError, QueryTimeoutError, Scan
from permalake.lake.serving.pool import QueryPool
from support import lakes

COUNT = "SELECT count(*) AS n FROM messages"


@pytest.fixture
def lake_settings(tmp_path):
    settings = lakes.settings_of(tmp_path / "warehouse")
    lake = lakes.OpenLake(settings)
    lakes.build(settings, lake, lakes.DAY1, 1, 3, "first")
    lakes.build(settings, lake, lakes.DAY2, 2, 5, "second")
    return settings


@pytest.fixture
def reader(lake_settings, tmp_path):
    reader = LakeReader(lake_settings, domain_of, pool_size=1, cache=tmp_path / "cache")
    yield reader
    reader.close()


def count(reader, snapshot, scan=EVERYTHING, sql=COUNT, **parameters):
    until = time.monotonic() + 120
    rows = reader.arrow(LakeQuery(snapshot, lakes.NETWORK, sql, parameters, {"messages": scan}, until))
    return rows.to_pylist()[0]["n"]


def test_a_scan_reads_only_files_whose_day_and_milestones_may_match(reader) -> None:
    snapshot = reader.snapshot()
    assert count(reader, snapshot) == 8
    assert count(reader, snapshot, Scan(milestones=[2])) == 5
    assert count(reader, snapshot, Scan(milestones=[7])) == 0
    assert count(reader, snapshot, Scan(days={lakes.DAY1})) == 3
    assert count(reader, snapshot, Scan(first=lakes.DAY2)) == 5
    assert count(reader, snapshot, Scan(last=lakes.DAY1)) == 3


def test_a_request_keeps_its_state_while_another_day_is_published(reader, lake_settings) -> None:
    before = reader.snapshot()
    assert not reader.refresh()
    lakes.build(lake_settings, lakes.OpenLake(lake_settings), lakes.DAY3, 3, 7, "third")
    assert reader.refresh()
    assert count(reader, before) == 8
    assert count(reader, reader.snapshot()) == 15
    # Only tables that the publication moved are read again.
    moved = {name for name, table in reader.snapshot().tables.items() if table is not before.tables[name]}
    assert moved == {(lakes.NETWORK, name) for name in ("messages", "ms_analytics", "date_cache")}


def test_others_follow_a_publication_before_it_is_served(reader, lake_settings) -> None:
    before, served = reader.snapshot().publication, []

    def follow() -> None:
        served.append(reader.snapshot().publication)

    assert not reader.refresh(follow)
    assert served == []
    lakes.build(lake_settings, lakes.OpenLake(lake_settings), lakes.DAY3, 3, 7, "third")
    assert reader.refresh(follow)
    assert served == [before] != [reader.snapshot().publication]


def test_parameters_are_bound(reader) -> None:
    sql = f"{COUNT} WHERE message_id = $id"
    assert count(reader, reader.snapshot(), sql=sql, id=f"{1:060x}{0:04x}") == 1
    assert count(reader, reader.snapshot(), sql=sql, id="' OR true --") == 0


def test_a_statement_may_bring_its_own_with_clause(reader) -> None:
    sql = "WITH second AS (SELECT * FROM messages WHERE milestone_index = 2) SELECT count(*) AS n FROM second"
    assert count(reader, reader.snapshot(), sql=sql) == 5


def test_a_query_past_its_time_is_cancelled_and_the_connection_lives_on(reader) -> None:
    endless = "SELECT count(*) AS n FROM range(1000000) a, range(1000000) b, messages"
    query = LakeQuery(
        reader.snapshot(), lakes.NETWORK, endless, {}, {"messages": EVERYTHING}, time.monotonic() + 0.2
    )
    with pytest.raises(QueryTimeoutError):
        reader.arrow(query)
    assert count(reader, reader.snapshot()) == 8


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('/etc/hostname'), messages",
        "SELECT * FROM glob('/etc/*'), messages",
    ],
)
def test_a_connection_reads_nothing_but_the_warehouse(reader, sql) -> None:
    with pytest.raises(duckdb.PermissionException):
        count(reader, reader.snapshot(), sql=sql)


def test_connections_go_to_callers_in_turn(tmp_path) -> None:
    pool, order = QueryPool(str(tmp_path), 1), []
    with ThreadPoolExecutor(5) as threads, pool.connection(time.monotonic() + 120):
        for number in range(5):
            threads.submit(take, pool, order, number)
            while pool.waiting <= number:
                time.sleep(0.001)
    assert order == [0, 1, 2, 3, 4]
    pool.close()


def take(pool, order, number) -> None:
    with pool.connection(time.monotonic() + 120):
        order.append(number)


def test_a_caller_that_waits_too_long_is_told_that_the_server_is_busy(tmp_path) -> None:
    pool = QueryPool(str(tmp_path), 1)
    with pool.connection(time.monotonic() + 120):
        with pytest.raises(PoolBusyError, match="busy"), pool.connection(time.monotonic() + 0.05):
            pass
        assert pool.waiting == 0
    with pool.connection(time.monotonic() + 1):
        pass
    pool.close()


def test_of_two_servers_one_indexes_a_publication(reader, lake_settings, tmp_path, caplog) -> None:
    other = LakeReader(lake_settings, domain_of, pool_size=1, cache=tmp_path / "cache")
    try:
        lakes.build(lake_settings, lakes.OpenLake(lake_settings), lakes.DAY3, 3, 7, "third")
        with caplog.at_level("INFO", "permalake.lake.serving.index"), ThreadPoolExecutor() as threads:
            assert all(threads.map(lambda one: one.refresh(), (reader, other)))
        told = [line for line in caplog.messages if "messages.message_id: indexed" in line]
        assert told == [f"{lakes.NETWORK}.messages.message_id: indexed to {lakes.DAY3}"]
        for one in (reader, other):
            found = one.find(one.snapshot(), lakes.NETWORK, "messages", "message_id", f"{3:060x}{6:04x}")
            assert list(found.milestones) == [3]
    finally:
        other.close()
