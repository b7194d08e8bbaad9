"""A catalog database that an earlier release made is brought up to date when it is opened.

The example of a migration is a column that the next release might add.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Column, Connection, Integer, MetaData, Table, inspect, select

from permalake.config import Settings
from permalake.lake import database as database_module
from permalake.lake.database import Database
from permalake.lake.migrations import add_column, applied
from permalake.lake.state import MIGRATIONS, attempts
from support import lake_processes
from support.lakes import DAY1, OpenLake, build
from support.lakes import state as published_state

spawn = multiprocessing.get_context("spawn")


def colour_of_attempts(connection: Connection) -> None:
    """The next release's migration: a column with a default, for whoever does not know it."""
    later = Table(attempts.name, MetaData(), Column("colour", Integer, nullable=False, server_default="7"))
    add_column(later.c.colour)(connection)


@pytest.fixture
def next_release(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(database_module, "MIGRATIONS", (*MIGRATIONS, colour_of_attempts))
    yield
    monkeypatch.undo()


def columns_of_attempts(database: Database) -> list[str]:
    return [column["name"] for column in inspect(database.engine).get_columns(attempts.name)]


def applied_numbers(database: Database) -> list[int]:
    with database.read() as connection:
        return list(connection.execute(select(applied.c.number).order_by(applied.c.number)).scalars())


def test_a_new_catalog_has_every_migration(settings: Settings) -> None:
    assert applied_numbers(Database(settings.lake.catalog_uri)) == list(range(1, len(MIGRATIONS) + 1))


def test_an_earlier_release_s_catalog_gets_what_it_lacks_and_keeps_its_rows(
    settings: Settings, lake: OpenLake, next_release: None
) -> None:
    build(settings, lake, DAY1, 1, 5, "run")
    later = Database(settings.lake.catalog_uri)
    assert applied_numbers(later) == list(range(1, len(MIGRATIONS) + 2))
    assert columns_of_attempts(later)[-1] == "colour"
    with later.read() as connection:
        colours = connection.exec_driver_sql(f"SELECT colour FROM {attempts.name}").scalars().all()
    assert colours == [7]
    assert published_state(lake) == {DAY1: (5, 5)}


def test_the_earlier_release_goes_on_beside_the_later_one(
    settings: Settings, lake: OpenLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "MIGRATIONS", (*MIGRATIONS, colour_of_attempts))
    Database(settings.lake.catalog_uri)
    monkeypatch.undo()
    build(settings, OpenLake(settings), DAY1, 1, 5, "run")
    assert published_state(OpenLake(settings)) == {DAY1: (5, 5)}


def test_an_up_to_date_catalog_is_opened_beside_a_writer(settings: Settings) -> None:
    """Waiting for the write lock would time out."""
    database = Database(settings.lake.catalog_uri)
    with database.write():
        assert applied_numbers(Database(settings.lake.catalog_uri))


def test_processes_that_open_a_new_catalog_at_once_migrate_it_once(settings: Settings) -> None:
    Path(settings.lake.warehouse).mkdir()
    barrier = spawn.Barrier(3)
    opened = (settings.lake.warehouse, barrier)
    racing = [spawn.Process(target=lake_processes.open_database, args=opened) for _ in range(3)]
    for process in racing:
        process.start()
    for process in racing:
        process.join(timeout=120)
    assert [process.exitcode for process in racing] == [0, 0, 0]
    assert applied_numbers(Database(settings.lake.catalog_uri)) == list(range(1, len(MIGRATIONS) + 1))


def test_a_migration_that_fails_leaves_nothing_behind(
    settings: Settings, lake: OpenLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(connection: Connection) -> None:
        raise RuntimeError("halfway")

    monkeypatch.setattr(database_module, "MIGRATIONS", (*MIGRATIONS, colour_of_attempts, fail))
    with pytest.raises(RuntimeError, match="halfway"):
        Database(settings.lake.catalog_uri)
    monkeypatch.undo()
    assert "colour" not in columns_of_attempts(Database(settings.lake.catalog_uri))


def test_a_column_that_older_rows_could_not_have_is_refused() -> None:
    table = Table("t", MetaData(), Column("n", Integer, nullable=False))
    with pytest.raises(ValueError, match="nullable or give it a server default"):
        add_column(table.c.n)
