"""Limits of queries hold whatever a query does: in processes of their own, which are ended."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Never

import pytest

from permalake import paths
from permalake.errors import ConfigError, PermalakeError
from permalake.query_process import QueryLimits, _received, in_own_process, limit_memory

MIB = 2**20
PERMALAKE = paths.ROOT / ".venv" / "bin" / "permalake"

CALLER = """
import os, time
from permalake.query_process import QueryLimits, in_own_process

def work(send):
    send(os.getpid())
    time.sleep(600)

sent = in_own_process(work, (), QueryLimits())
print(next(sent), flush=True)
time.sleep(600)
"""


def counting(send, last) -> None:
    for number in range(last):
        send(number)


def failing(_send, code) -> Never:
    raise ConfigError("wrong key") if code == 2 else ValueError("first line\nsecond")


def sleeping(send) -> None:
    send(os.getpid())
    time.sleep(600)


def grasping(send, limits) -> None:
    limit_memory(limits)
    send(len(bytes(3_000 * MIB)))


def killed(_send) -> None:
    os.kill(os.getpid(), 9)


def scratch(send) -> None:
    import tempfile

    send(tempfile.mkdtemp())


def test_what_is_sent_comes_in_order() -> None:
    assert list(in_own_process(counting, (5,), QueryLimits())) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("code", "error", "text"), [(2, ConfigError, "wrong key"), (1, PermalakeError, "ValueError: first line")]
)
def test_an_error_is_that_of_the_work(code, error, text) -> None:
    with pytest.raises(PermalakeError, match=f"^{text}$") as raised:
        list(in_own_process(failing, (code,), QueryLimits()))
    assert raised.value.exit_code == error.exit_code


def test_work_that_does_not_look_at_the_clock_is_killed(monkeypatch) -> None:
    monkeypatch.setattr("permalake.query_process._GRACE", 0.0)
    sent = in_own_process(sleeping, (), QueryLimits(timeout=20.0))
    process = next(sent)
    with pytest.raises(
        PermalakeError, match="the query took longer than 20 s; narrow it, or raise --timeout"
    ):
        next(sent)
    assert not Path(f"/proc/{process}").exists()


def test_a_query_ends_with_the_process_that_waits_for_it() -> None:
    """Killed, or ended by ``timeout`` or a service manager, the command left the query behind for ever."""
    with subprocess.Popen([sys.executable, "-c", CALLER], stdout=subprocess.PIPE, text=True) as caller:
        query = int(caller.stdout.readline())
        caller.kill()
        try:
            # The query has inherited the pipe, which ends with it.
            assert caller.communicate(timeout=20) == ("", None)
        finally:
            with suppress(ProcessLookupError):
                os.kill(query, signal.SIGKILL)


@pytest.mark.parametrize(("work", "has_limits"), [(grasping, True), (killed, False)])
def test_work_that_takes_too_much_memory_ends_with_the_limit(work, has_limits) -> None:
    limits = QueryLimits(memory="100MiB")
    with pytest.raises(
        PermalakeError, match=r"needs more than 100MiB of memory; narrow it, or raise --memory"
    ):
        list(in_own_process(work, (limits,) if has_limits else (), limits))


def test_work_that_ends_in_the_middle_of_a_row_ends_with_the_limit() -> None:
    receiver, sender = multiprocessing.Pipe(duplex=False)
    os.write(sender.fileno(), (100).to_bytes(4, "big") + b"less than a hundred bytes")
    sender.close()
    with receiver, pytest.raises(PermalakeError, match="memory"):
        next(_received(receiver, None, QueryLimits()))


def test_what_work_leaves_on_disk_is_removed() -> None:
    [folder] = in_own_process(scratch, (), QueryLimits())
    assert not Path(folder).parent.exists()


def test_sizes_are_those_of_duckdb() -> None:
    sizes = ("500MiB", "2GiB", "1.5 GB", "10kb")
    assert [QueryLimits(memory=size).memory_bytes for size in sizes] == [
        500 * MIB, 2**31, 1_500_000_000, 10_000,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "sql",
    [
        "select len(repeat('a', 3000000000))",
        "select repeat(chr(97 + (i % 26)::int), 1000000) t from range(5000) s(i)",
    ],
)
def test_the_command_holds_its_memory(tmp_path, sql) -> None:
    """Text that an expression makes is none of DuckDB's buffers: the first took 5.96 GB, the second 4.2."""
    environment = {**os.environ, "PERMALAKE_LAKE__WAREHOUSE": str(tmp_path / "lake")}
    command = [PERMALAKE, "query", "--timeout", "60", "--memory", "300MiB", sql]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "permalake: the query needs more than 300MiB of memory; narrow it, or raise --memory\n"
    )
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert peak == before or peak < 1_000 << 10
