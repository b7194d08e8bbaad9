"""The process that a run ends with: once it was killed, leases and Spark jobs of the run end too."""

from __future__ import annotations

import os
import platform
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil

from permalake.process_start import start_of

OWNER = "PERMALAKE_RUN_OWNER"
"""Variable with the owner of what this process and those below it do."""
_GRACE_SECONDS = 5


@contextmanager
def owning() -> Iterator[None]:
    """Make this process the owner, for the time of the block."""
    os.environ[OWNER] = name_of(psutil.Process())
    try:
        yield
    finally:
        os.environ.pop(OWNER, None)


def name_of(process: psutil.Process) -> str:
    """Return how a process is named as an owner: its machine, its number and its start."""
    return f"{platform.node()} {process.pid} {start_of(process)}"


def is_gone(owner: str | None) -> bool:
    """Return whether an owner is named and that process no longer runs on this machine."""
    machine, _, process = (owner or "").partition(" ")
    if not process or machine != platform.node():
        return False
    number, _, started = process.partition(" ")
    try:
        named = psutil.Process(int(number))
        # A process that nobody has waited for is still listed when it has ended.
        return start_of(named) != started or named.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def end_with_owner() -> None:
    """End this process and its group once the owner, if there is one, was killed."""
    owner = os.environ.get(OWNER)

    def watch() -> None:
        while not is_gone(owner):
            time.sleep(1)
        _end_group()

    if owner:
        threading.Thread(target=watch, daemon=True).start()


def _end_group() -> None:
    """Ask the others of this process's group to end, then kill what is left, this process too."""
    group = os.getpgrp()
    others = []
    for process in psutil.process_iter():
        with suppress(OSError, psutil.Error):  # ended meanwhile
            if process.pid != os.getpid() and os.getpgid(process.pid) == group:
                process.terminate()
                others.append(process)
    psutil.wait_procs(others, timeout=_GRACE_SECONDS)
    os.killpg(group, signal.SIGKILL)
