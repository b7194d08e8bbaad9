"""The process that a run ends with."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from permalake.lake.owner import OWNER, is_gone, name_of, owning

# A worker of Airflow's executor goes on when it is asked to end while a task runs.
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
JOB = (
    "import subprocess, sys; from permalake.lake.owner import end_with_owner; end_with_owner();"
    f"subprocess.run([sys.executable, '-c', {STUBBORN!r}])"
)


@pytest.fixture
def process():
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as started:
        yield started
        started.kill()


def test_a_killed_owner_is_gone_before_anybody_waits_for_it(process) -> None:
    owner = name_of(psutil.Process(process.pid))
    assert not is_gone(owner)
    process.kill()
    give_up = time.monotonic() + 120
    while not is_gone(owner) and time.monotonic() < give_up:
        time.sleep(0.05)
    assert is_gone(owner)


@pytest.mark.parametrize("owner", [None, "", "elsewhere 1 0.00"])
def test_nobody_knows_of_other_machines(owner) -> None:
    assert not is_gone(owner)


def test_the_block_names_this_process() -> None:
    with owning():
        assert not is_gone(os.environ[OWNER])
        assert is_gone(os.environ[OWNER][:-3] + ".--")
    assert OWNER not in os.environ


def test_an_owner_is_there_after_somebody_has_set_the_clock(monkeypatch) -> None:
    with owning():
        boot = psutil.boot_time()
        monkeypatch.setattr("psutil._pslinux.boot_time", lambda: boot + 3600)
        assert not is_gone(os.environ[OWNER])


def test_a_job_ends_with_its_owner_and_takes_along_what_does_not_want_to_end(process) -> None:
    environment = {**os.environ, OWNER: name_of(psutil.Process(process.pid))}
    with subprocess.Popen([sys.executable, "-c", JOB], env=environment, start_new_session=True) as job:
        give_up = time.monotonic() + 120
        while not (below := psutil.Process(job.pid).children()) and time.monotonic() < give_up:
            time.sleep(0.1)
        assert len(below) == 1
        time.sleep(0.5)  # until it ignores the signal
        process.kill()
        process.wait()
        assert job.wait(timeout=120) == -signal.SIGKILL
    _, alive = psutil.wait_procs(below, timeout=120)
    assert alive == []
