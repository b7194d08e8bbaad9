"""A small configuration with two IOTA networks and Wormhole, on files of its own."""

from __future__ import annotations

import sqlite3

import pytest

from permalake.config import load_settings

CONFIG = """
[lake]
warehouse = "warehouse"
[networks.shimmer]
protocol = "stardust"
bech32_hrp = "smr"
path = "shimmer"
[networks.testnet]
protocol = "stardust"
bech32_hrp = "rms"
path = "testnet"
[wormhole]
path = "wormhole"
[prices]
path = "prices.csv"
"""


@pytest.fixture
def config(tmp_path):
    """The configuration file; inputs are files of a few bytes."""
    for folder in ("shimmer", "testnet/2022", "wormhole"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "blocks.jsonl").write_text("{}\n")
    (tmp_path / "prices.csv").write_text("time,price\n")
    file = tmp_path / "permalake.toml"
    file.write_text(CONFIG)
    return file


@pytest.fixture
def settings(config):
    return load_settings(config)


@pytest.fixture
def metadata_file(tmp_path):
    """A sqlite file as Airflow keeps its metadata in one, with a table of runs."""
    path = tmp_path / "airflow.db"
    with sqlite3.connect(path) as made:
        made.execute("PRAGMA journal_mode=WAL")
        made.execute("CREATE TABLE run (id)")
    return path
