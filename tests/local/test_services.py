"""The servers' life: up, up again, killed, stale pid files, a taken port, down."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys

import psutil
import pytest

from permalake.errors import PermalakeError
from permalake.local.services import control
from permalake.local.services.daemon import LOOPBACK, Daemon, free_port


@pytest.fixture
def silent():
    said = []
    return said, said.append


@pytest.fixture
def emulator(tmp_path):
    chosen = {"bigtable": control.servers(bigtable_port=free_port(), folder=tmp_path)["bigtable"]}
    yield chosen, tmp_path
    chosen["bigtable"].daemon.stop()


def test_up_twice_starts_one_server(emulator, silent) -> None:
    chosen, folder = emulator
    said, say = silent
    control.up(chosen, say, folder)
    first = chosen["bigtable"].daemon.record()
    control.up(chosen, say, folder)
    assert chosen["bigtable"].daemon.record() == first
    assert said[-1].endswith("already")
    (found,) = control.status(chosen)
    assert (found.state, found.pid) == ("up", first["pid"])


def test_killed_server_is_down_and_starts_again(emulator, silent) -> None:
    chosen, folder = emulator
    _, say = silent
    control.up(chosen, say, folder)
    killed = chosen["bigtable"].daemon.record()["pid"]
    os.killpg(killed, signal.SIGKILL)
    os.waitpid(killed, 0)
    assert control.status(chosen)[0].state == "down"
    control.up(chosen, say, folder)
    assert chosen["bigtable"].daemon.record()["pid"] != killed
    assert control.status(chosen)[0].state == "up"


def test_down_ends_the_group_and_no_other_process(emulator, silent) -> None:
    chosen, folder = emulator
    said, say = silent
    control.up(chosen, say, folder)
    pid = chosen["bigtable"].daemon.record()["pid"]
    control.down(chosen, say, folder)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    control.down(chosen, say, folder)
    assert said[-2:] == ["bigtable: stopped", "bigtable: was not up"]


def test_pid_file_of_another_process_is_stale(tmp_path) -> None:
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    try:
        daemon = Daemon("bigtable", tmp_path)
        stale = {"pid": other.pid, "port": 1, "start": "1000.00"}
        (tmp_path / "bigtable.pid").write_text(json.dumps(stale))
        assert daemon.record() is None
        assert daemon.stop() is False
        assert other.poll() is None
        assert not (tmp_path / "bigtable.pid").exists()
    finally:
        other.kill()
        other.wait()


def test_a_server_is_up_after_somebody_has_set_the_clock(tmp_path, monkeypatch) -> None:
    daemon = Daemon("idle", tmp_path)
    daemon.start([sys.executable, "-c", "import time; time.sleep(60)"], free_port(), lambda: True, 20)
    boot = psutil.boot_time()
    with monkeypatch.context() as clock:
        clock.setattr("psutil._pslinux.boot_time", lambda: boot + 3600)
        assert daemon.record() is not None
    assert daemon.stop()


@pytest.mark.parametrize("content", ["", "not json", "{}", '{"pid": 999999999, "port": 1, "start": "0.00"}'])
def test_broken_pid_file_means_down(tmp_path, content) -> None:
    (tmp_path / "bigtable.pid").write_text(content)
    assert Daemon("bigtable", tmp_path).record() is None


def test_taken_port_is_named(emulator, silent) -> None:
    chosen, folder = emulator
    _, say = silent
    with socket.socket() as taken:
        taken.bind((LOOPBACK, chosen["bigtable"].port))
        taken.listen()
        with pytest.raises(
            PermalakeError, match=rf"port {chosen['bigtable'].port} is in use.*--bigtable-port"
        ):
            control.up(chosen, say, folder)


def test_server_that_ends_at_once_is_reported_with_its_log(tmp_path) -> None:
    daemon = Daemon("broken", tmp_path)
    with pytest.raises(PermalakeError, match=r"broken ended at once; see .*broken\.log"):
        daemon.start([sys.executable, "-c", "print('no')"], free_port(), lambda: False, 20)
    assert daemon.record() is None
