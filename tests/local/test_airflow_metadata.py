"""Airflow's metadata database of one machine."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from permalake.errors import PermalakeError
from permalake.local import airflow_env, airflow_metadata
from permalake.pipeline.domain import POOL


def test_it_is_made_once_and_an_older_one_is_migrated_with_what_it_holds(monkeypatch, tmp_path) -> None:
    for module in (airflow_env, airflow_metadata):
        monkeypatch.setattr(module, "AIRFLOW_HOME", tmp_path / "airflow")
    file = airflow_metadata.database()
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("select slots from slot_pool where pool = ?", (POOL,)).fetchall() == [(2,)]
        connection.execute("update slot_pool set slots = 5 where pool = ?", (POOL,))
        connection.commit()
    made = file.stat().st_ino
    assert airflow_metadata.database().stat().st_ino == made
    for marker in file.parent.glob("migrated-*"):  # As an earlier version of Airflow leaves it.
        marker.unlink()
    with pytest.raises(PermalakeError, match="stop it first: make down"):
        airflow_metadata.database(is_in_use=True)
    assert airflow_metadata.database().stat().st_ino != made
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("select slots from slot_pool where pool = ?", (POOL,)).fetchall() == [(5,)]
