"""Maintenance beside builds: the past stays as far back as it is kept, staged work stays, the rest goes."""

from __future__ import annotations

import json
import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from permalake.config import Settings
from permalake.domains import domain_of
from permalake.errors import PermalakeError
from permalake.iota.contracts import IOTA_TABLES
from permalake.lake import leases, published
from permalake.lake.carry import Carries
from permalake.lake.catalog import copy_pointers, locations, open_table
from permalake.lake.counts import files
from permalake.lake.identity import open_database
from permalake.lake.maintenance.commit import alone
from permalake.lake.maintenance.limits import Limits, limits
from permalake.lake.maintenance.tidy import clear_landings, tidy, would_tidy
from permalake.lake.state import attempt_tables, attempts, publication_tables, served
from support.lakes import DAY1, DAY2, DAY3, NETWORK, build, pass_audit, stage_day, state

YEAR = timedelta(days=365)


def now():
    return datetime.now(UTC)


def after(moment):
    """Keep what was current at ``moment``; touch everything else, however young."""
    return Limits(history=moment, abandoned=moment - YEAR, young=now() + YEAR)


def maintain(settings, lake, limits):
    done = tidy(settings, lake.database, NETWORK, limits, "maintain", confirmed=True)
    return {one.name.partition(".")[2]: one for one in done}


def everything(lake, as_of=None, tables=("messages", "ms_analytics", "date_cache")):
    """All rows of those tables."""
    return {
        name: lake.query(f"select * from {NETWORK}.{name} order by all", as_of).to_pylist() for name in tables
    }


def stored(settings):
    return {str(file) for file in Path(settings.lake.warehouse).rglob("*") if file.is_file()}


def data_files(lake, *moments):
    """Data files that the states at those moments, and now, are made of."""
    states = [published.state(lake.database)]
    states += [published.past_state(lake.database, domain_of, moment) for moment in moments]
    found = set()
    for pointers in states:
        for (network, _), location in pointers.items():
            if location is not None and network == NETWORK:
                found |= {file.file_path for file in files(open_table(location))}
    return found


@pytest.fixture
def history(settings, lake):
    """A day built thrice with another day in between: the moments after each publication."""
    moments = []
    for day, milestone, count in ((DAY1, 1, 5), (DAY2, 2, 7), (DAY1, 1, 3), (DAY1, 1, 4)):
        build(settings, lake, day, milestone, count, f"run {len(moments)}")
        moments.append(now())
    return moments


def test_the_past_can_be_read_as_far_back_as_it_is_kept_and_nothing_else_is_left(
    settings, lake, history
) -> None:
    kept = [everything(lake, moment) for moment in history[1:]]
    today = everything(lake, tables=IOTA_TABLES)
    done = maintain(settings, lake, after(history[1]))
    assert everything(lake).items() <= today.items()
    assert [everything(lake, moment) for moment in history[1:]] == kept
    with pytest.raises(PermalakeError, match=r"shimmer: what was published before .* is forgotten"):
        lake.query("select * from shimmer.messages", history[0])
    assert done["messages"].states == 1
    assert done["messages"].snapshots > 0
    on_disk = {path for path in stored(settings) if path.endswith(".parquet")}
    assert on_disk == data_files(lake, *history[1:])

    done = maintain(settings, lake, Limits(history=now(), abandoned=now(), young=now() + YEAR))
    assert everything(lake, tables=IOTA_TABLES) == today
    assert done["messages"].removed > 0
    on_disk = {path for path in stored(settings) if path.endswith(".parquet")}
    assert on_disk == data_files(lake)
    assert len(open_table(lake.reader.locations(NETWORK)["messages"]).metadata.snapshots) == 1


def test_as_of_between_two_publications_gives_the_state_of_then(settings, lake, history) -> None:
    maintain(settings, lake, after(history[1]))
    counts = [
        lake.query("select count(*) n from shimmer.messages", moment).to_pylist()[0]["n"]
        for moment in history[1:]
    ]
    assert counts == [12, 10, 11]


def test_a_second_maintenance_finds_nothing_and_days_are_built_after_it(settings, lake, history) -> None:
    limit = after(now())
    maintain(settings, lake, limit)
    before = stored(settings)
    assert not [str(one) for one in maintain(settings, lake, limit).values() if one.anything]
    assert stored(settings) == before
    build(settings, lake, DAY3, 3, 9, "later")
    assert state(lake) == {DAY1: (4, 4), DAY2: (7, 7), DAY3: (9, 9)}


def test_strays_go_and_young_files_stay(settings, lake, history) -> None:
    folder = Path(settings.lake.warehouse) / NETWORK / "messages"
    old, young = folder / "data" / "old.parquet", folder / "metadata" / "young.avro"
    for file in (old, young):
        file.write_bytes(b"nobody's")
    long_ago = (now() - timedelta(days=3)).timestamp()
    os.utime(old, (long_ago, long_ago))
    done = maintain(settings, lake, limits(settings.lake))
    assert not old.exists()
    assert young.exists()
    assert str(done["messages"]) == "shimmer.messages: 1 file removed (8 bytes)"
    assert not any(one.anything for name, one in done.items() if name != "messages")


@pytest.mark.parametrize("holding", [True, False], ids=["running", "between two tasks"])
def test_what_was_staged_before_is_published_after(settings, lake, history, holding) -> None:
    staged = lake.begin(NETWORK, DAY2, DAY3, "staged")
    stage_day(settings, staged, DAY3, 3, 9)
    pass_audit(staged)
    if not holding:
        lake.leave()
        lake.builds.release(NETWORK, "staged")
    maintain(settings, lake, after(now()))
    again = lake.resume(NETWORK, "staged")
    assert again.staged.counts()["messages"] == {DAY3: 9}
    done = lake.publish(NETWORK, "staged")
    assert done.rows == {"date_cache": 1, "messages": 9, "ms_analytics": 1}
    assert done.replayed
    assert state(lake) == {DAY1: (4, 4), DAY3: (9, 9)}
    maintain(settings, lake, after(now()))
    assert state(lake) == {DAY1: (4, 4), DAY3: (9, 9)}


def test_files_that_a_running_build_has_not_committed_yet_stay(settings, lake, history) -> None:
    running = lake.begin(NETWORK, DAY3, DAY3, "running")
    file = Path(settings.lake.warehouse) / NETWORK / "messages" / "data" / "in-flight.parquet"
    file.write_bytes(b"half a file")
    maintain(settings, lake, after(now()))
    assert file.exists()
    lake.discard(running)
    lake.builds.release(NETWORK, "running")
    maintain(settings, lake, after(now()))
    assert not file.exists()


def test_files_that_are_being_carried_stay(settings, lake, history) -> None:
    carries = Carries(settings, lake.database, domain_of)
    file = Path(settings.lake.warehouse) / NETWORK / "ledger_totals" / "data" / "in-flight.parquet"
    with carries.begin(NETWORK, "carrying"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"half a file")
        maintain(settings, lake, after(now()))
        assert file.exists()
    maintain(settings, lake, after(now()))
    assert not file.exists()


def test_a_day_published_while_a_table_is_edited_is_kept(settings, lake, history, monkeypatch) -> None:
    from permalake.lake.maintenance import expire as module

    real, calls = module._old, []

    def disturbed(table, limits):
        if not calls:
            build(settings, lake, DAY3, 3, 9, "meanwhile")
        calls.append(table)
        return real(table, limits)

    monkeypatch.setattr(module, "_old", disturbed)
    maintain(settings, lake, after(now()))
    assert state(lake) == {DAY1: (4, 4), DAY2: (7, 7), DAY3: (9, 9)}


def test_an_abandoned_staging_is_given_up_and_a_held_one_is_not(settings, lake, history) -> None:
    left = lake.begin(NETWORK, DAY3, DAY3, "left")
    stage_day(settings, left, DAY3, 3, 9)
    landing = Path(left.landing)
    landing.mkdir(parents=True)
    (landing / "part.parquet").write_bytes(b"landed")
    limit = Limits(history=now(), abandoned=now() + YEAR, young=now() + YEAR)
    maintain(settings, lake, limit)
    assert clear_landings(settings, lake.database, limit).removed == 0
    assert lake.resume(NETWORK, "left").staged.counts()["messages"] == {DAY3: 9}

    lake.leave()
    lake.builds.release(NETWORK, "left")
    assert clear_landings(settings, lake.database, limit, dry_run=True).removed == 1
    maintain(settings, lake, limit)
    assert str(clear_landings(settings, lake.database, limit)) == "_attempts: 1 file removed (6 bytes)"
    assert not landing.exists()
    with pytest.raises(PermalakeError, match="was discarded"):
        lake.resume(NETWORK, "left")
    with lake.database.read() as connection:
        assert connection.execute(attempt_tables.select()).all() == []
    on_disk = {path for path in stored(settings) if path.endswith(".parquet")}
    assert on_disk == data_files(lake)


def serve(lake, day, publication_id, *states) -> None:
    with lake.database.write() as connection:
        connection.execute(
            served.insert().values(
                network=NETWORK,
                store="cassandra",
                date=day,
                publication_id=publication_id,
                states=json.dumps(states),
            )
        )


def served_states(lake):
    with lake.database.read() as connection:
        return {row.date: json.loads(row.states) for row in connection.execute(served.select())}


def test_states_of_which_rows_may_be_in_a_store_stay_readable(settings, lake) -> None:
    first = build(settings, lake, DAY1, 1, 5, "a")
    old = lake.reader.locations(NETWORK)
    second = build(settings, lake, DAY2, 2, 7, "b")
    build(settings, lake, DAY1, 1, 3, "c")
    serve(lake, DAY1, first.id, old)  # due: it was published again since
    serve(lake, DAY2, second.id, old)  # whole, as published
    maintain(settings, lake, after(now()))
    assert served_states(lake) == {DAY1: [old], DAY2: [lake.reader.locations(NETWORK)]}
    assert sum(file.record_count for file in files(open_table(old["messages"]))) == 5
    for file in files(open_table(old["messages"])):
        assert Path(file.file_path).is_file()


def test_where_a_needed_file_is_missing_nothing_is_removed(settings, lake, history) -> None:
    with lake.database.read() as connection:
        rows = connection.execute(publication_tables.select().order_by(publication_tables.c.publication_id))
        lost = [row.metadata_location for row in rows if row.table_name == "messages"][1]
    Path(lost).unlink()
    before = stored(settings)
    done = maintain(settings, lake, after(history[1]))
    assert done["messages"].removed == 0
    assert lost in done["messages"].spared
    gone = before - stored(settings)
    assert gone
    assert not any("/messages/" in path for path in gone)
    assert state(lake) == {DAY1: (4, 4), DAY2: (7, 7)}


def test_a_dry_run_tells_what_would_happen_and_changes_nothing(settings, lake, history) -> None:
    limit = after(history[2])
    before = stored(settings), lake.reader.locations(NETWORK)
    told = {
        one.name: one
        for one in would_tidy(settings, lake.database, NETWORK, domain_of(NETWORK).tables, limit)
    }
    assert (stored(settings), lake.reader.locations(NETWORK)) == before
    done = {f"{NETWORK}.{name}": one for name, one in maintain(settings, lake, limit).items()}
    assert {name: str(one) for name, one in told.items()} == {name: str(one) for name, one in done.items()}
    assert any(one.removed for one in done.values())


def test_one_maintenance_at_a_time_and_a_killed_one_leaves_nothing(settings, lake, history) -> None:
    with (
        alone(settings, lake.database, NETWORK, "first"),
        pytest.raises(PermalakeError, match="shimmer is being maintained by run"),
        alone(settings, lake.database, NETWORK, "second"),
    ):
        pass
    with lake.database.write() as connection:
        copy_pointers(connection, "maintain_killed", NETWORK, lake.reader.locations(NETWORK))
    maintain(settings, lake, after(now()))
    with lake.database.read() as connection:
        assert locations(connection, "maintain_killed", NETWORK) == {}
        assert connection.execute(leases.leases.select()).all() == []


def test_audit_pages_go_but_for_the_latest_build_of_each_day(
    settings, lake, history, tmp_path, monkeypatch
) -> None:
    from permalake.audit import docs
    from permalake.pipeline.maintenance import housekeeping

    monkeypatch.setattr(docs, "root", lambda: tmp_path / "audit")
    with lake.database.read() as connection:
        attempts_of = {row.run_id: row.attempt_id for row in connection.execute(attempts.select())}
    summary = {"judged_at": "", "days": 1, "passed": 1, "expectations": 1, "warnings": 0, "failures": []}
    for run_id, attempt_id in attempts_of.items():
        page = docs.folder(NETWORK, attempt_id) / "summary.json"
        page.parent.mkdir(parents=True)
        page.write_text(json.dumps(summary | {"title": run_id}))
        os.utime(page, (0, 0))
    *_, pages = housekeeping(settings, domain_of, [NETWORK], "maintain")
    assert (pages.name, pages.removed) == ("audit pages", 2)
    index = (tmp_path / "audit" / "index.html").read_text()
    assert [run_id for run_id in attempts_of if run_id in index] == ["run 1", "run 3"]


def test_a_warehouse_under_another_name_is_left_alone(settings, lake, history, tmp_path) -> None:
    """Every file of it would look needless, as what points to it says the old name: no command opens it."""
    shutil.copytree(settings.lake.warehouse, tmp_path / "moved")
    moved = Settings(
        lake={"warehouse": str(tmp_path / "moved"), "catalog": settings.lake.catalog_uri}  # type: ignore[arg-type]
    )
    with pytest.raises(PermalakeError, match="the lake was copied or moved"):
        open_database(moved)


def test_folders_that_are_no_table_s_are_left_alone(settings, lake, history) -> None:
    notes = Path(settings.lake.warehouse) / NETWORK / "notes" / "data" / "read.me"
    beside = Path(settings.lake.warehouse) / NETWORK / "messages" / "read.me"
    for file in (notes, beside):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("mine")
    maintain(settings, lake, after(now()))
    assert notes.exists()
    assert beside.exists()
