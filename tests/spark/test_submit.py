"""A submit belongs to the call that made it."""

from __future__ import annotations

import signal
import sys
import threading
from _thread import interrupt_main

import psutil
import pytest

from permalake.spark import submit
from permalake.spark.submit import Submission, SubmitEnd

SLEEPER = (
    "import subprocess, sys, time; print('begun', flush=True);"
    "subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])"
)


class OtherCommand(Submission):
    """A submission whose command is Python, not Java: what counts here is the process."""

    def command(self) -> list[str]:
        return [sys.executable, "-c", *self.arguments]


@pytest.fixture
def log(tmp_path, config, monkeypatch):
    monkeypatch.setenv("PERMALAKE_CONFIG", str(config))
    return tmp_path / "logs" / "run.log"


def test_output_and_exit_code_are_told(log) -> None:
    for code in (0, 3):
        submission = OtherCommand("job", "", [f"print('{code} ends'); exit({code})"], {})
        assert submit.run(submission, log) == SubmitEnd(code, f"{code} ends\n")
    assert log.read_text() == "0 ends\n3 ends\n"


@pytest.fixture
def interruptible():
    """SIGINT raises KeyboardInterrupt here, also where the caller ignores it: a job in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_call_leaves_nothing_behind(log) -> None:
    # Servers that earlier tests of this process share are its children too.
    before = set(psutil.Process().children(recursive=True))
    below: list[psutil.Process] = []

    def watch() -> None:
        below[:] = set(psutil.Process().children(recursive=True)) - before
        if len(below) == 2:
            threading.Thread(target=interrupt_main).start()

    with pytest.raises(KeyboardInterrupt):
        submit.run(OtherCommand("job", "", [SLEEPER], {}), log, watch)
    _, alive = psutil.wait_procs(below, timeout=10)
    assert alive == []


def test_the_command_names_job_settings_and_arguments() -> None:
    command = Submission("audit", "permalake audit", ["--network", "n"], {"spark.a": "b c"}).command()
    assert command[0].endswith("spark-submit")
    assert command[-4:] == ["--conf=spark.a=b c", submit.job_file("audit"), "--network", "n"]
