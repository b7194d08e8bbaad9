"""One pace for all processes of this machine towards a service: runs of several days share its rate."""

from __future__ import annotations

import fcntl
import hashlib
import time
from pathlib import Path

from permalake.paths import HOME


class SharedPace:
    """Departures towards the service at ``address``, a step apart. The monotonic clock is the machine's, so
    that processes may compare what it says."""

    def __init__(self, address: str, folder: Path = HOME / "paces") -> None:
        # Hashed: the address of a node often holds a key.
        self._file = folder / hashlib.sha256(address.encode()).hexdigest()[:16]
        folder.mkdir(parents=True, exist_ok=True)

    def wait(self, step: float) -> None:
        """Until the next departure, which then is this one; the one after it may leave ``step`` seconds
        later. Others queue at the lock meanwhile, so that a waiter that is killed leaves nothing behind."""
        with self._file.open("a+", encoding="ascii") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            left, before = map(float, file.read().split() or (0, 0))
            now = time.monotonic()
            if left <= now:  # else it is from before a restart, when the clock began anew
                time.sleep(max(0.0, left + before - now))
            file.truncate(0)
            file.write(f"{time.monotonic()!r} {step!r}")
