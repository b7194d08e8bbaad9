"""The environment in which Airflow and Spark run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from permalake.errors import PermalakeError
from permalake.local import airflow_env, airflow_secrets, airflow_server
from permalake.paths import DAGS, ROOT
from permalake.spark import submit


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    monkeypatch.setattr(airflow_env, "AIRFLOW_HOME", tmp_path / "airflow")
    for name in ("PERMALAKE_SPARK_MASTER", "PERMALAKE_SPARK_DRIVER_MEMORY", "AIRFLOW__CORE__PARALLELISM"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "airflow"


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        (None, "local[*]"),
        ("spark://host:7077", "spark://host:7077"),
        ("yarn", "yarn"),
        ("local[2]", "local[2]"),
    ],
)
def test_the_connection_leads_spark_submit_to_the_master(monkeypatch, tmp_path, master, expected) -> None:
    # What the user exported holds; loading the DAGs exports a connection too.
    monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT", raising=False)
    if master:
        monkeypatch.setenv("PERMALAKE_SPARK_MASTER", master)
    made = airflow_env.airflow_environment(database=tmp_path / "a.db")
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", made["AIRFLOW_CONN_SPARK_DEFAULT"])
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

    assert SparkSubmitHook(conn_id="spark_default")._connection["master"] == expected


def test_it_is_this_projects_and_the_users_own_settings_hold(monkeypatch, tmp_path, config) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__PARALLELISM", "9")
    monkeypatch.setenv("AIRFLOW__CORE__LOAD_EXAMPLES", "True")
    made = airflow_env.airflow_environment(database=tmp_path / "a.db", config=config)
    assert made["AIRFLOW__CORE__DAGS_FOLDER"] == str(DAGS)
    assert made["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] == f"sqlite:///{tmp_path / 'a.db'}"
    assert made["AIRFLOW__CORE__PARALLELISM"] == "9"
    assert made["AIRFLOW__CORE__LOAD_EXAMPLES"] == "False"
    assert made["PERMALAKE_CONFIG"] == str(config)
    assert made["PATH"].startswith(str(Path(sys.executable).parent))
    assert made["PYSPARK_PYTHON"] == sys.executable
    assert "PYTHONDONTWRITEBYTECODE" not in made


def test_driver_memory_is_a_share_of_the_machine_unless_configured(monkeypatch) -> None:
    assert 1 <= int(submit.driver_memory().removesuffix("g")) <= 8
    monkeypatch.setenv("PERMALAKE_SPARK_DRIVER_MEMORY", "3500m")
    assert submit.driver_memory() == "3500m"


def test_secrets_are_made_once_and_are_nobody_elses(home, monkeypatch) -> None:
    first = airflow_secrets.environment(home)
    assert airflow_secrets.environment(home) == first
    assert len(airflow_secrets.password(home)) >= 12
    assert first["AIRFLOW__API_AUTH__JWT_SECRET"] != first["AIRFLOW__API__SECRET_KEY"]
    passwords = Path(first["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"])
    assert json.loads(passwords.read_text()) == {"admin": airflow_secrets.password(home)}
    for file in (passwords, home / "secrets.json"):
        assert file.stat().st_mode & 0o077 == 0
    monkeypatch.setenv("AIRFLOW__CORE__FERNET_KEY", "mine")
    assert airflow_secrets.environment(home)["AIRFLOW__CORE__FERNET_KEY"] == "mine"


@pytest.mark.parametrize("number", ["0", "65534", "70000", "-1", "eighty", "²"])
def test_a_port_that_is_none_is_named(monkeypatch, number) -> None:
    monkeypatch.setenv("PERMALAKE_PORT", number)
    with pytest.raises(PermalakeError, match=f"PERMALAKE_PORT {number}: not a port"):
        airflow_server.port()


def test_cleaning_up_keeps_the_private_key_of_the_log(tmp_path) -> None:
    home = tmp_path / "home"
    shutil.copy(ROOT / "Makefile", tmp_path)
    for file in ("keys/log.key", "warehouse/catalog.db", ".hidden"):
        (home / file).parent.mkdir(parents=True, exist_ok=True)
        (home / file).write_text(file)
    environment = {**os.environ, "PERMALAKE_HOME": str(home)}
    clean = partial(subprocess.run, ["make", "--silent", "clean"], cwd=tmp_path, env=environment, check=True)
    clean()
    assert [str(left.relative_to(home)) for left in home.rglob("*")] == ["keys", "keys/log.key"]
    (home / "keys" / "log.key").unlink()
    (home / "keys").rmdir()
    clean()
    assert not home.exists()
