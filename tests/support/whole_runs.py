"""Whole runs of the bundled day as processes, and what a lake has published, to compare runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pyarrow as pa

from permalake.config import load_settings
from permalake.domains import domain_of
from permalake.paths import SAMPLE
from support.lakes import OpenLake

PERMALAKE = str(Path(sys.executable).with_name("permalake"))
DAY = "2022-09-28"


def configuration(folder: Path) -> Path:
    """A configuration with a warehouse in ``folder`` and the bundled Shimmer milestones."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "permalake.toml"
    file.write_text(
        '[lake]\nwarehouse = "warehouse"\n\n[networks.shimmer]\nprotocol = "stardust"\nbech32_hrp = "smr"\n'
        f'source = "archive_rest"\npath = "{SAMPLE / "shimmer"}"\n'
    )
    return file


def start(config: Path, **environment: str) -> psutil.Popen:
    """``permalake run iota`` for the bundled day; what it prints goes into ``run.log``."""
    command = [PERMALAKE, "run", "iota", "--date", DAY]
    with (config.parent / "run.log").open("ab") as log:
        environment = {**os.environ, "PERMALAKE_CONFIG": str(config), **environment}
        return psutil.Popen(command, env=environment, stdout=log, stderr=log)


def finish(config: Path, **environment: str) -> None:
    """The same, to its end."""
    assert start(config, **environment).wait(timeout=1200) == 0, (config.parent / "run.log").read_text()


def finish_through_airflow(config: Path, **environment: str) -> None:
    """The same day by its DAG, in the metadata database below ``PERMALAKE_HOME``."""
    conf = {"network": "shimmer", "start": DAY}
    command = [sys.executable, "-m", "permalake.local.dag_runs", json.dumps([["iota", conf]])]
    with (config.parent / "run.log").open("ab") as log:
        environment = {**os.environ, "PERMALAKE_CONFIG": str(config), **environment}
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=log, check=False)
    assert done.stdout == b"success\n", (config.parent / "run.log").read_text()


def rows(config: Path, network: str) -> dict[str, pa.Table]:
    """Every published row of a network, sorted, without the columns that hold a clock."""
    lake = OpenLake(load_settings(config))
    found = {}
    for name, contract in domain_of(network).tables.items():
        columns = [column for column in contract.names if column not in contract.first_value]
        listed = ", ".join(f'"{column}"' for column in columns)
        found[name] = lake.query(f'select {listed} from "{network}".{name} order by all')
    return found


def assert_same(found: dict[str, pa.Table], expected: dict[str, pa.Table]) -> None:
    """The same tables with the same rows."""
    assert found.keys() == expected.keys()
    for name, table in expected.items():
        assert found[name].equals(table), name
