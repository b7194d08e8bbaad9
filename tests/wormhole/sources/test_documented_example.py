"""The example of docs/sources.md: a lake from the API of another one has its messages and observations."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from permalake.api.app import create_app
from permalake.cli import simulate
from permalake.config import CONFIG_VARIABLE, load_settings
from permalake.paths import ROOT
from support.jobs import job
from support.lakes import OpenLake, pass_audit
from support.live_api import live_api

EXAMPLE = (ROOT / "docs" / "sources.md").read_text().partition("### Example: ")[2].partition("\n## ")[0]
FIRST, SECOND = re.findall(r"```sh\n(.*?)```", EXAMPLE, re.DOTALL)
[CONFIGURATION] = re.findall(r"```toml\n(.*?)```", EXAMPLE, re.DOTALL)
TABLES = (
    "message_publication",
    "quorum_state",
    "observations",
    "token_transfer_payload",
    "asset_meta_payload",
)


def commands(text: str) -> list[list[str]]:
    """The words of each command of `permalake`; indented lines go on with the one before."""
    every = re.split(r"\n(?=\S)", text.strip())
    return [shlex.split(one) for one in every if one.startswith("permalake ")]


def option(words: list[str], name: str) -> str:
    return words[words.index(name) + 1]


def built(spark: Any, patch: pytest.MonkeyPatch, run: list[str]) -> OpenLake:
    """The lake after the jobs of `permalake run` for the day, and a publication."""
    assert run[:3] == ["permalake", "run", "wormhole"]
    day = option(run, "--date")
    patch.setenv(CONFIG_VARIABLE, option(run, "--config"))
    job("wormhole_ingest")(
        ["--network", "wormhole", "--start", day, "--end", day, "--run-id", "documented"], spark
    )
    lake = OpenLake(load_settings())
    lake.builds.publish(pass_audit(lake.resume("wormhole", "documented")))
    return lake


def rows(lake: OpenLake) -> dict[str, pa.Table]:
    return {name: lake.query(f"SELECT * FROM wormhole.{name} ORDER BY ALL") for name in TABLES}


@pytest.fixture(scope="module")
def example(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    folder = tmp_path_factory.mktemp("documented")
    made, first_run, served = commands(FIRST)
    second_run, query = commands(SECOND)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr("permalake.paths.HOME", folder / "home")
        told = CliRunner().invoke(simulate.app, made[2:])
        assert told.exit_code == 0, told.output
        patch.setenv("PERMALAKE_LAKE__WAREHOUSE", str(folder / "first"))
        first = rows(built(spark.newSession(), patch, first_run))
        assert option(served, "--config") == option(first_run, "--config")
        with live_api(create_app(load_settings())) as url:
            patch.delenv("PERMALAKE_LAKE__WAREHOUSE")
            address = f"http://127.0.0.1:{option(served, '--port')}"
            assert CONFIGURATION.count(address) == 2
            Path(option(second_run, "--config")).write_text(CONFIGURATION.replace(address, url))
            lake = built(spark.newSession(), patch, second_run)
        assert load_settings().lake.warehouse == str(folder / "second")
        return SimpleNamespace(first=first, second=rows(lake), answer=lake.query(query[-1]).to_pylist())


@pytest.mark.parametrize("table", TABLES)
def test_both_lakes_have_the_same_rows(example: SimpleNamespace, table: str) -> None:
    assert example.first[table].num_rows > 0
    assert example.second[table].to_pylist() == example.first[table].to_pylist()


def test_the_documented_query_counts_observations_of_every_message(example: SimpleNamespace) -> None:
    assert example.answer == [
        {
            "observations": example.first["observations"].num_rows,
            "messages": example.first["message_publication"].num_rows,
        }
    ]
    guardians = example.first["observations"]["in_vaa"].to_pylist()
    assert set(guardians) == {0, 1}
