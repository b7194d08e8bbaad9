"""The process that a run ends with."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time

import psutil
import pytest

from permalake.lake.owner import OWNER, is_gone, owning

JOB = "from permalake.lake.owner import end_with_owner; import time; end_with_owner(); time.sleep(60)"


@pytest.fixture
def process():
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as started:
        yield started
        started.kill()


def name_of(process: subprocess.Popen) -> str:
    return f"{platform.node()} {process.pid} {psutil.Process(process.pid).create_time():.2f}"


def test_a_killed_owner_is_gone_before_anybody_waits_for_it(process):
    owner = name_of(process)
    assert not is_gone(owner)
    process.kill()
    give_up = time.monotonic() + 10
    while not is_gone(owner) and time.monotonic() < give_up:
        time.sleep(0.05)
    assert is_gone(owner)


@pytest.mark.parametrize("owner", [None, "", "elsewhere 1 0.00"])
def test_nobody_knows_of_other_machines(owner):
    assert not is_gone(owner)


def test_the_block_names_this_process():
    with owning():
        assert not is_gone(os.environ[OWNER])
        assert is_gone(os.environ[OWNER][:-3] + ".--")
    assert OWNER not in os.environ


def test_a_job_ends_with_its_owner(process):
    environment = {**os.environ, OWNER: name_of(process)}
    with subprocess.Popen([sys.executable, "-c", JOB], env=environment, start_new_session=True) as job:
        process.kill()
        process.wait()
        assert job.wait(timeout=30) == -15
