"""What a figure was measured on, and what a process tree costs."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import psutil

_INTERVAL = 0.5
_REST_SECONDS, _REST_PERCENT = 3, 10


def machine() -> dict:
    """Cores, memory and Python of this machine."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "python": platform.python_version(),
    }


def say(line: str) -> None:
    """A line of progress; standard output is for figures."""
    sys.stderr.write(f"{line}\n")


def timed(work: Callable[[], object]) -> float:
    """Wall seconds that it takes."""
    began = time.monotonic()
    work()
    return time.monotonic() - began


def at_rest(pid: int) -> None:
    """Wait until a server does next to nothing: what it still has to do is not a part of what comes next."""
    process = psutil.Process(pid)
    while process.cpu_percent(_REST_SECONDS) > _REST_PERCENT:
        pass


@dataclass(frozen=True, slots=True)
class Usage:
    """Wall seconds, processor seconds and peak memory (bytes, shared pages counted once) of a process and
    everything it started."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int


Look = Callable[[float, Sequence[psutil.Process]], object]


def _look_away(cpu_seconds: float, family: Sequence[psutil.Process]) -> None:
    pass


def watch(
    command: Sequence[str], environment: Mapping[str, str] | None = None, look: Look = _look_away
) -> Usage:
    """Run a command to its end and watch its process tree; a failure raises CalledProcessError.

    ``look`` is given the processor seconds so far and the processes, twice a second. What is true of its
    answer ends the command, whose exit code does not count then.
    """
    before = os.times()
    began = time.monotonic()
    process = subprocess.Popen(command, env=environment, stdout=2)
    peak = 0
    seen: dict[tuple[int, float], float] = {}
    ended = threading.Event()
    is_enough = False

    def sample() -> None:
        nonlocal peak, is_enough
        while not ended.wait(_INTERVAL):
            family = tree(process.pid)
            peak = max(peak, sum(map(_bytes, family)))
            seen.update(_processor_seconds(family))
            if look(sum(seen.values()), family) and not is_enough:
                is_enough = True
                process.terminate()

    watcher = threading.Thread(target=sample, daemon=True)
    watcher.start()
    code = process.wait()
    seconds = time.monotonic() - began
    ended.set()
    watcher.join()
    if code and not is_enough:
        raise subprocess.CalledProcessError(code, list(command))
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    # The system forgets a process that nobody waits for, as Spark's Python workers at its end.
    return Usage(seconds, max(cpu, sum(seen.values())), peak)


def tree(pid: int) -> list[psutil.Process]:
    """A process and its descendants."""
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _bytes(member: psutil.Process) -> int:
    """Proportional set size, 0 of a process that has ended."""
    try:
        return member.memory_full_info().pss
    except (psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied):
        return 0


def _processor_seconds(family: Sequence[psutil.Process]) -> Iterator[tuple[tuple[int, float], float]]:
    """Yield what each process has used so far, by what tells it from every other."""
    for member in family:
        try:
            used = member.cpu_times()
            yield (member.pid, member.create_time()), used.user + used.system
        except (psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied):
            continue
