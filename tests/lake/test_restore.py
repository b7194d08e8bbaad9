"""Catalog and warehouse belong together, and a lost catalog is built again."""

from __future__ import annotations

import shutil
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import delete, select

from permalake.domains import domain_of
from permalake.errors import PermalakeError
from permalake.lake.identity import open_database
from permalake.lake.maintenance.limits import Limits, limits
from permalake.lake.maintenance.tidy import tidy
from permalake.lake.publication_log import logged_ids
from permalake.lake.restore import restore
from permalake.lake.state import days, lake_ids, moment, networks, publication_tables, publications
from permalake.pipeline import maintenance
from support.lakes import (
    DAY1,
    DAY2,
    DAY3,
    NETWORK,
    OpenLake,
    build,
    pass_audit,
    settings_of,
    stage_day,
    state,
)

RUNBOOK = "see docs/runbooks/restore.md"


def after(moment):
    """Keep what was current at ``moment``; touch everything else, however young."""
    year = timedelta(days=365)
    return Limits(history=moment, abandoned=moment - year, young=datetime.now(UTC) + year)


def catalog_of(settings):
    return Path(settings.lake.warehouse) / "catalog.db"


def lose(settings) -> None:
    for file in Path(settings.lake.warehouse).glob("catalog.db*"):
        file.unlink()


def content(database):
    """What a restored catalog must hold again."""
    with database.read() as connection:
        return {
            table.name: [
                dict(row._mapping) for row in connection.execute(select(table).order_by(*table.c[:3]))
            ]
            for table in (publications, publication_tables, days)
        }


@pytest.fixture
def built(settings, lake):
    """Two days, the first built twice, and a third that is staged beside but not published."""
    done = [
        build(settings, lake, DAY1, 1, 5, "a"),
        build(settings, lake, DAY2, 2, 7, "b"),
        build(settings, lake, DAY1, 1, 6, "c"),
    ]
    staged = lake.begin(NETWORK, DAY3, DAY3, "staged")
    stage_day(settings, staged, DAY3, 3, 9)
    pass_audit(staged)
    lake.leave()
    lake.builds.release(NETWORK, "staged")
    return done


def test_a_lost_catalog_is_built_again_as_it_was_published(settings, lake, built) -> None:
    before, wanted = (
        content(lake.database),
        lake.query("from shimmer.messages order by all").to_pylist(),
    )
    lose(settings)
    (done,) = restore(settings)
    assert str(done) == "shimmer: 3 publications, 2 days, 3 tables"
    assert done.damaged == {}
    again = OpenLake(settings)
    assert content(again.database) == before | {"permalake_days": before["permalake_days"][:2]}
    assert len(before["permalake_days"]) == 3
    assert again.query("from shimmer.messages order by all").to_pylist() == wanted
    counts = [
        again.query("select count(*) n from shimmer.messages", moment(one.published_at))["n"][0].as_py()
        for one in built
    ]
    assert counts == [5, 12, 13]
    assert again.builds.is_unchanged(NETWORK, DAY1, DAY2, "")
    build(settings, again, DAY3, 3, 4, "later")
    assert state(again) == {DAY1: (6, 6), DAY2: (7, 7), DAY3: (4, 4)}


def test_maintenance_of_a_lost_catalog_removes_nothing(settings, lake, built) -> None:
    files = set(Path(settings.lake.warehouse).rglob("*.parquet"))
    lose(settings)
    for command in (
        lambda: OpenLake(settings),
        lambda: maintenance.chosen(settings),
        lambda: list(maintenance.housekeeping(settings, domain_of, [NETWORK], "maintain")),
    ):
        with pytest.raises(PermalakeError, match=r"the catalog is empty, but .*`permalake restore`") as error:
            command()
        assert RUNBOOK in str(error.value)
    assert set(Path(settings.lake.warehouse).rglob("*.parquet")) == files


def test_a_catalog_of_another_lake_is_refused(settings, lake, built, tmp_path) -> None:
    other = settings_of(tmp_path / "other")
    build(other, OpenLake(other), DAY1, 1, 2, "other")
    shutil.copy(catalog_of(other), catalog_of(settings))
    with pytest.raises(PermalakeError, match=f"the catalog is of lake .*{RUNBOOK}"):
        OpenLake(settings)
    with pytest.raises(PermalakeError, match=f"the catalog is of lake .*{RUNBOOK}"):
        restore(settings)


def test_a_lost_warehouse_is_refused(settings, lake, built) -> None:
    catalog = catalog_of(settings).read_bytes()
    shutil.rmtree(settings.lake.warehouse)
    Path(settings.lake.warehouse).mkdir()
    catalog_of(settings).write_bytes(catalog)
    with pytest.raises(PermalakeError, match=f"does not hold the lake .*{RUNBOOK}"):
        OpenLake(settings)
    assert not (Path(settings.lake.warehouse) / "_lake.json").exists()


def test_a_catalog_that_lost_its_id_is_refused(settings, lake, built) -> None:
    with lake.database.write() as connection:
        connection.execute(delete(lake_ids))
    (Path(settings.lake.warehouse) / "_lake.json").unlink()
    with pytest.raises(PermalakeError, match=f"tables but no lake id.*permalake restore.*{RUNBOOK}"):
        OpenLake(settings)
    assert not (Path(settings.lake.warehouse) / "_lake.json").exists()


def test_an_older_copy_of_the_catalog_is_refused_and_brought_up_to_date(settings, lake, built) -> None:
    copy = catalog_of(settings).read_bytes()
    build(settings, lake, DAY3, 3, 9, "after the backup")
    wanted = state(lake)
    lose(settings)
    catalog_of(settings).write_bytes(copy)
    older = OpenLake(settings)
    with pytest.raises(PermalakeError, match="ends with publication 3, the warehouse with 4"):
        older.begin(NETWORK, DAY1, DAY1, "run")
    with pytest.raises(PermalakeError, match=r"ends with publication 3.*`permalake restore`"):
        tidy(settings, older.database, NETWORK, limits(settings.lake), "maintain")
    (done,) = restore(settings)
    assert str(done) == "shimmer: 1 publications, 1 days, 3 tables"
    assert state(OpenLake(settings)) == wanted
    with pytest.raises(PermalakeError, match=f"nothing to restore, {RUNBOOK}"):
        restore(settings)


def test_what_a_killed_publisher_did_not_log_is_logged_by_the_next(settings, lake, monkeypatch) -> None:
    from permalake.lake import commit as publishing

    with monkeypatch.context() as killed:
        killed.setattr(publishing, "write_log", lambda *_: None)
        build(settings, lake, DAY1, 1, 5, "killed")
    assert logged_ids(settings) == []
    build(settings, lake, DAY2, 2, 7, "next")
    assert logged_ids(settings) == [1, 2]
    lose(settings)
    restore(settings)
    assert state(OpenLake(settings)) == {DAY1: (5, 5), DAY2: (7, 7)}


def test_states_that_maintenance_forgot_stay_forgotten(settings, lake, built) -> None:
    tidy(settings, lake.database, NETWORK, after(moment(built[1].published_at)), "maintain", confirmed=True)
    with lake.database.read() as connection:
        horizon = connection.execute(select(networks.c.history_from)).scalar()
    lose(settings)
    restore(settings)
    again = OpenLake(settings)
    assert again.query("select count(*) n from shimmer.messages")["n"][0].as_py() == 13
    with pytest.raises(PermalakeError, match="is forgotten"):
        again.query("from shimmer.messages", moment(built[0].published_at))
    with again.database.read() as connection:
        assert connection.execute(select(networks.c.history_from)).scalar() == horizon


def test_a_damaged_table_is_named_and_the_others_are_restored(settings, lake, built) -> None:
    Path(lake.reader.locations(NETWORK)["messages"].removeprefix("file://")).write_text("{", "utf-8")
    lose(settings)
    (done,) = restore(settings)
    assert set(done.damaged) == {"messages"}
    assert OpenLake(settings).query("select count(*) n from shimmer.ms_analytics")["n"][0].as_py() == 2


def test_most_files_are_removed_only_when_that_is_confirmed(settings, lake, built) -> None:
    with sqlite3.connect(catalog_of(settings)) as connection:  # as if somebody had emptied these tables
        connection.execute("delete from permalake_publication_tables")
        connection.execute("delete from permalake_attempt_tables")
        connection.execute("delete from iceberg_tables where catalog_name <> 'permalake'")
    fresh = lake.begin(NETWORK, DAY1, DAY2, "empties")
    pass_audit(fresh)
    files = {file for file in Path(settings.lake.warehouse).rglob("*") if file.is_file()}
    lake.discard(fresh)
    with sqlite3.connect(catalog_of(settings)) as connection:
        for name, location in connection.execute("select table_name, metadata_location from iceberg_tables"):
            first = sorted(Path(location.removeprefix("file://")).parent.glob("00000-*.metadata.json"))[0]
            connection.execute(
                "update iceberg_tables set metadata_location = ? where table_name = ?", (str(first), name)
            )
    with pytest.raises(PermalakeError, match=r"shimmer: \d+ of \d+ files are needless .*--confirm-removal"):
        tidy(settings, lake.database, NETWORK, after(datetime.now(UTC)), "maintain")
    assert set(Path(settings.lake.warehouse).rglob("*.parquet")) <= files
    done = tidy(settings, lake.database, NETWORK, after(datetime.now(UTC)), "maintain", confirmed=True)
    assert sum(one.removed for one in done) > 10


def test_a_new_lake_gets_its_id_once(settings) -> None:
    first, second = open_database(settings), open_database(settings)
    with first.read() as one, second.read() as other:
        assert one.execute(select(lake_ids.c.lake_id)).scalars().all() == (
            other.execute(select(lake_ids.c.lake_id)).scalars().all()
        )
