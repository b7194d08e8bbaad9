"""Writers of Airflow's sqlite file wait for each other, behind savepoints too."""

import sqlite3

import pytest

from permalake.orchestrate.metadata_locks import CONNECT_ARGS


def read_in_a_savepoint(connection):
    cursor = connection.cursor()
    cursor.execute("SAVEPOINT one")
    assert cursor.execute("SELECT count(*) FROM run").fetchone() == (0,)
    return cursor


def add(cursor) -> None:
    cursor.execute("INSERT INTO run VALUES (1)")


def test_a_savepoint_holds_the_write_lock(metadata_file) -> None:
    ours, other = sqlite3.connect(metadata_file, **CONNECT_ARGS), sqlite3.connect(metadata_file, timeout=0)
    cursor = read_in_a_savepoint(ours)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        add(other)
    add(cursor)
    cursor.execute("RELEASE SAVEPOINT one")
    ours.commit()
    add(other)
    other.commit()
    assert ours.cursor().execute("SELECT count(*) FROM run").fetchone() == (2,)


def test_without_it_a_write_after_a_read_is_refused_at_once(metadata_file) -> None:
    plain, other = sqlite3.connect(metadata_file, timeout=60), sqlite3.connect(metadata_file, timeout=0)
    cursor = read_in_a_savepoint(plain)
    add(other)
    other.commit()
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        add(cursor)
