"""A catalog database that an earlier version made is brought up to date when it is opened."""

from __future__ import annotations

import multiprocessing
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import Column, Integer, MetaData, Table, inspect, select

from permalake.domains import open_reader
from permalake.lake.migrations import add_column, pending
from permalake.lake.state import MIGRATIONS, Database, days, leases
from support import lake_processes, places
from support.lakes import DAY1, NETWORK, OpenLake, build, state

spawn = multiprocessing.get_context("spawn")
FIRST = places.DATA / "lake" / "catalog_first.sql"


@pytest.fixture
def first_catalog(settings):
    """The catalog database as the first version left it, with a lease and a day."""
    file = Path(settings.lake.warehouse) / "catalog.db"
    file.parent.mkdir()
    connection = sqlite3.connect(file)
    connection.executescript(FIRST.read_text("utf-8"))
    connection.close()
    return file


def schema_of(database):
    """Every table's columns, keys and indexes, as the database tells them."""
    told = inspect(database.engine)
    return {
        table: (
            {column["name"]: (str(column["type"]), column["nullable"]) for column in told.get_columns(table)},
            told.get_pk_constraint(table)["constrained_columns"],
            {(index["name"], *index["column_names"]) for index in told.get_indexes(table)},
        )
        for table in told.get_table_names()
    }


def test_an_old_catalog_becomes_what_a_new_one_is_and_keeps_its_rows(settings, first_catalog, tmp_path):
    """Fails for whoever adds a table or a column without a step."""
    old = Database(settings.lake.catalog_uri)
    assert schema_of(old) == schema_of(Database(f"sqlite:///{tmp_path}/new.db"))
    with old.read() as connection:
        assert connection.execute(select(leases.c.run_id, leases.c.owner)).all() == [("long gone", None)]
        assert connection.execute(select(days.c.date, days.c.quarantined)).all() == [(DAY1, 2)]
        assert pending(connection, MIGRATIONS) == []


def test_leases_of_earlier_versions_get_their_kind(settings, first_catalog):
    with sqlite3.connect(first_catalog) as connection:
        for number, name in enumerate(("shimmer@cassandra", "shimmer/carry", "shimmer")):
            connection.execute(
                "INSERT INTO permalake_leases (network, start, end, run_id, taken_at, beat_at) "
                "VALUES (?, '2030-01-01', '2030-01-01', ?, '', '')",
                (name, f"run {number}"),
            )
    with Database(settings.lake.catalog_uri).read() as connection:
        rows = connection.execute(select(leases.c.run_id, leases.c.network, leases.c.kind)).all()
    assert {
        ("run 0", "shimmer", "cassandra"),
        ("run 1", "shimmer", "carry"),
        ("run 2", "shimmer", "days"),
    } < {tuple(row) for row in rows}


def test_days_are_built_on_an_old_catalog(settings, first_catalog):
    lake = OpenLake(settings)
    build(settings, lake, DAY1, 1, 5, "run")
    assert state(lake) == {DAY1: (5, 5)}


def test_an_up_to_date_catalog_is_opened_beside_a_writer(settings, first_catalog):
    """Waiting for the write lock would time out."""
    open_reader(settings)
    with Database(settings.lake.catalog_uri).write():
        open_reader(settings).status()


def test_processes_that_open_an_old_catalog_at_once_take_each_step_once(settings, first_catalog):
    barrier = spawn.Barrier(3)
    opened = (settings.lake.warehouse, barrier)
    racing = [spawn.Process(target=lake_processes.open_database, args=opened) for _ in range(3)]
    for process in racing:
        process.start()
    for process in racing:
        process.join(timeout=120)
    assert [process.exitcode for process in racing] == [0, 0, 0]
    with sqlite3.connect(first_catalog) as connection:
        assert [
            row[0] for row in connection.execute("select name from permalake_migrations order by rowid")
        ] == list(MIGRATIONS)
    assert open_reader(settings).status(NETWORK)[0].quarantined == 2


def test_a_step_that_fails_leaves_nothing_behind(settings, first_catalog, monkeypatch):
    def fail(connection):
        raise RuntimeError("halfway")

    monkeypatch.setattr("permalake.lake.state.MIGRATIONS", {**MIGRATIONS, "fails": fail})
    with pytest.raises(RuntimeError, match="halfway"):
        Database(settings.lake.catalog_uri)
    monkeypatch.undo()
    with sqlite3.connect(first_catalog) as connection:
        tables = {row[0] for row in connection.execute("select name from sqlite_master where type = 'table'")}
    assert not tables & {"permalake_migrations", "permalake_served"}
    Database(settings.lake.catalog_uri)


def test_a_column_that_older_rows_could_not_have_is_refused():
    table = Table("t", MetaData(), Column("n", Integer, nullable=False))
    with pytest.raises(ValueError, match="nullable or give it a server default"):
        add_column(table.c.n)
