"""One pace for all processes of a machine towards a service.

Runs of several days share the service's rate, and all wait when it asks one of them to. Processes on
different machines know nothing of each other: give each machine its share of the rate.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import struct
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from permalake.paths import HOME

_NOTE = struct.Struct("<3d")
_LONGEST_HOLD = 600.0
"""Bounds what a note from before a restart can ask for, where the system does not number its starts."""
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class CrossProcessRateLimiter:
    """Departures towards the service at ``address``, a step apart.

    The monotonic clock is the machine's, since its start, so that its processes can compare values. Machines
    may share the folder: a file belongs to one clock.
    """

    def __init__(self, address: str, folder: Path | None = None) -> None:
        place = folder or HOME / "paces"
        place.mkdir(parents=True, exist_ok=True)
        # Hashed: the address of a node often holds a key.
        self._file = place / hashlib.sha256(f"{address}\n{_clock_id()}".encode()).hexdigest()[:16]

    def wait(self, step: float) -> None:
        """Wait for the next departure; the one after it follows ``step`` seconds later at the earliest.

        Others queue at the lock meanwhile, so that a process that is killed leaves nothing behind.
        """
        with self._locked() as file:
            left, before, held = _read(file)
            now = time.monotonic()
            time.sleep(max(0.0, min(left + before - now, before), min(held - now, _LONGEST_HOLD)))
            _write(file, time.monotonic(), step, 0.0)

    def hold(self, seconds: float) -> None:
        """Let no process depart before ``seconds`` have passed: the service asked for it."""
        with self._locked() as file:
            left, before, held = _read(file)
            _write(file, left, before, max(held, time.monotonic() + seconds))

    @contextmanager
    def _locked(self) -> Iterator[int]:
        file = os.open(self._file, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            os.close(file)


def _clock_id() -> str:
    """Return what distinguishes the monotonic clock of this machine from others."""
    try:
        return _BOOT_ID.read_text()
    except OSError:
        return str(uuid.getnode())


def _read(file: int) -> tuple[float, float, float]:
    """Return the last departure, the step after it, and until when the service asked to wait."""
    noted = os.pread(file, _NOTE.size, 0)
    left, before, held = _NOTE.unpack(noted) if len(noted) == _NOTE.size else (0.0, 0.0, 0.0)
    return left, before, held


def _write(file: int, left: float, step: float, held: float) -> None:
    # In place: to empty the file first costs more than all the rest.
    os.pwrite(file, _NOTE.pack(left, step, held), 0)
