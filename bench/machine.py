"""What a figure was measured on, and what a process tree costs."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
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


def watch(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Usage:
    """Run a command to its end and watch its process tree; a failure raises CalledProcessError."""
    before = os.times()
    began = time.monotonic()
    process = subprocess.Popen(command, env=environment, stdout=2)
    peak = 0
    ended = threading.Event()

    def sample() -> None:
        nonlocal peak
        while not ended.wait(_INTERVAL):
            peak = max(peak, tree_bytes(process.pid))

    watcher = threading.Thread(target=sample, daemon=True)
    watcher.start()
    code = process.wait()
    seconds = time.monotonic() - began
    ended.set()
    watcher.join()
    if code:
        raise subprocess.CalledProcessError(code, list(command))
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Usage(seconds, cpu, peak)


def tree_bytes(pid: int) -> int:
    """Proportional set size of a process and its descendants."""
    try:
        root = psutil.Process(pid)
        family = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0
    total = 0
    for member in family:
        try:
            total += member.memory_full_info().pss
        except (psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied):
            continue
    return total
