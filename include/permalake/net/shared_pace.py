"""One pace for all processes of this machine towards a service: runs of several days share its rate."""

from __future__ import annotations

import fcntl
import hashlib
import time
from pathlib import Path

from permalake.paths import HOME

_LONGEST = 60.0
"""Seconds that departures are planned ahead at most; what says more is from before a restart, when the clock
began anew."""


class SharedPace:
    """Departures towards the service at ``address``, a step apart. The monotonic clock is the machine's, so
    that processes may compare what it says."""

    def __init__(self, address: str, folder: Path = HOME / "paces") -> None:
        # Hashed: the address of a node often holds a key.
        self._file = folder / hashlib.sha256(address.encode()).hexdigest()[:16]
        folder.mkdir(parents=True, exist_ok=True)

    def wait(self, step: float) -> None:
        """Until the next departure, which then is this one; the one after it may leave ``step`` seconds
        later."""
        with self._file.open("a+", encoding="ascii") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            now = time.monotonic()
            told = float(file.read() or now)
            mine = max(now, told) if told < now + _LONGEST else now
            file.truncate(0)
            file.write(repr(mine + step))
        time.sleep(max(0.0, mine - now))
