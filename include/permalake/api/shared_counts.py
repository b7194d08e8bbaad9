"""Counts that the workers of a server share: requests per client, and the figures of ``/metrics``.

Both lie in files of the supervisor's temporary folder, which two environment variables name; a server of one
process has neither, and counts in its own memory.
"""

from __future__ import annotations

import fcntl
import hashlib
import mmap
import os
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""prometheus_client's own variable: with it, every process keeps its figures in files there."""
RATES_FILE = "PERMALAKE_SERVE_RATES"
_BUCKET = struct.Struct("<Qdd")
_BUCKETS = 1 << 16


class RateLimit:
    """Requests per client and minute, as buckets of tokens that fill evenly; 0: no limit.

    A table of 65,536 buckets holds them, for all workers. Two clients that share a place in it push each
    other out, which lets each ask a little more.
    """

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        if per_minute:
            name = os.environ.get(RATES_FILE)
            self._file = Path(name).open("a+b") if name else tempfile.TemporaryFile()  # noqa: SIM115
            self._file.truncate(_BUCKETS * _BUCKET.size)
            self._table = mmap.mmap(self._file.fileno(), _BUCKETS * _BUCKET.size)

    def wait(self, client: str, now: float) -> float:
        """Return 0 and count a request, or the seconds until the client may ask again.

        ``now``: seconds of :func:`time.monotonic`, which all processes of a machine share.
        """
        if not self._per_minute:
            return 0.0
        key = int.from_bytes(hashlib.blake2b(client.encode(), digest_size=8).digest(), "little") or 1
        place = key % _BUCKETS * _BUCKET.size
        with self._alone():
            owner, tokens, seen = _BUCKET.unpack_from(self._table, place)
            if owner != key:
                tokens, seen = float(self._per_minute), now
            tokens = min(self._per_minute, tokens + (now - seen) * self._per_minute / 60)
            allowed = tokens >= 1
            _BUCKET.pack_into(self._table, place, key, tokens - 1 if allowed else tokens, now)
        return 0.0 if allowed else (1 - tokens) * 60 / self._per_minute

    @contextmanager
    def _alone(self) -> Iterator[None]:
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)


def forget_worker(pid: int | None) -> None:
    """Take what a dead worker was doing out of the metrics; what it had counted stays."""
    for file in Path(os.environ[METRICS_FOLDER]).glob(f"gauge_live*_{pid}.db"):
        file.unlink(missing_ok=True)
