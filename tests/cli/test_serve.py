"""What ``permalake serve`` needs of the machine: files, and its port."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from permalake.config import Settings
from support import lakes

PERMALAKE = Path(sys.executable).with_name("permalake")
SCRIPT = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
from permalake.cli.serve import _within_open_files
from permalake.config.serving import (ServeSettings)
print(_within_open_files(ServeSettings()).connections, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.parametrize(
    ("soft", "hard", "connections", "raised"),
    [(256, 4096, 1024, 2048), (256, 1500, 476, 1500), (256, 256, 64, 256)],
)
def test_connections_leave_files_to_the_lake(soft, hard, connections, raised) -> None:
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < hard:
        pytest.fail("this machine allows fewer open files than the test needs")
    script = SCRIPT.format(soft=soft, hard=hard)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(connections), str(raised)]
    assert ("serve.connections is" in done.stderr) == (connections < 1024)


@pytest.fixture
def environment(tmp_path):
    """The environment of a server over a lake of one day."""
    networks = {lakes.NETWORK: {"protocol": "stardust", "bech32_hrp": "smr", "path": "."}}
    settings = Settings(lake={"warehouse": str(tmp_path / "lake")}, networks=networks)  # type: ignore[arg-type]
    lakes.build(settings, lakes.OpenLake(settings), lakes.DAY1, 1, 3, "first")
    return {
        **os.environ,
        "PERMALAKE_HOME": str(tmp_path),
        "PERMALAKE_LAKE__WAREHOUSE": str(tmp_path / "lake"),
    }


def test_it_says_where_it_serves_once_connections_are_accepted(environment) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [PERMALAKE, "serve", "--port", str(port), "--workers", "1"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as server:
        try:
            line = next(line for line in server.stderr if line.startswith("serving "))
            with urlopen(f"http://127.0.0.1:{port}/health", timeout=60) as answer:
                assert answer.status == 200
        finally:
            server.terminate()
    assert f"at http://127.0.0.1:{port}, docs at /docs" in line


def test_a_port_that_is_taken_is_named(environment) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        command = [PERMALAKE, "serve", "--port", str(port)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"permalake: 127.0.0.1:{port} is taken: something listens there" in done.stderr
    assert f"--port {port + 1}" in done.stderr
    assert "address already in use" in done.stderr.lower()
