"""`permalake live` as people start it: a Spark submit of its own, killed and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest

from permalake import paths
from permalake.config import load_settings
from support.iota_days import SYNTHETIC, expected
from support.lakes import OpenLake
from support.live_network import LiveNetwork, configuration
from support.node_server import NodeServer
from support.whole_runs import PERMALAKE

SEEN = f"SELECT message_id FROM {LiveNetwork.name}.messages_with_live"


@pytest.fixture
def node():
    with NodeServer(SYNTHETIC / "stardust" / "archive", "stardust") as server:
        yield server


def start(config, *arguments):
    command = [PERMALAKE, "live", "iota", "--config", str(config), *arguments]
    environment = {**os.environ, "PERMALAKE_HOME": str(config.parent / "home")}
    (config.parent / "home").mkdir(exist_ok=True)
    jars = config.parent / "home" / "jars"
    if not jars.exists():
        jars.symlink_to(paths.JARS)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=environment, start_new_session=True, **pipes)


def seen(lake):
    ids = [row["message_id"] for row in lake.query(SEEN).to_pylist()]
    assert len(ids) == len(set(ids))
    return set(ids)


@pytest.mark.long
def test_a_killed_command_goes_on_where_it_was(node, tmp_path) -> None:
    config = tmp_path / "permalake.toml"
    config.write_text(configuration(tmp_path, node, batch_milestones=3))
    lake = OpenLake(load_settings(config))
    lake.ensure(LiveNetwork.name)
    everything = {row["message_id"] for row in expected("stardust", "messages")}
    node.delay = 0.02
    first = start(config)
    until = time.monotonic() + 240
    while not (some := seen(lake)) and first.poll() is None and time.monotonic() < until:
        time.sleep(0.1)
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    assert 0 < len(some) < len(everything)
    node.delay = 0.0
    second = start(config, "--once")
    out, err = second.communicate(timeout=400)
    assert (second.returncode, err) == (0, "")
    assert "live testnet: milestones " in out
    assert out.splitlines()[-1].endswith(" s")
    assert seen(lake) == everything


def test_what_cannot_be_followed_is_one_line(tmp_path, node) -> None:
    config = tmp_path / "permalake.toml"
    archive = f'source = "archive_rest"\npath = "{tmp_path}"'
    config.write_text(configuration(tmp_path, node).replace('source = "node"', archive))
    refused = start(config)
    _, err = refused.communicate(timeout=200)
    assert refused.returncode == 2
    assert err.count("\n") == 1
    assert "networks.testnet.source: archive_rest does not grow" in err
