"""The logs that this machine has checked: which key signs each, and how far it went.

A log that is shorter than it was, or whose beginning has changed, was rolled back or forked.
"""

from __future__ import annotations

import fcntl
import json
from dataclasses import asdict, dataclass

from permalake.errors import PermalakeError
from permalake.lake.warehouse_files import write_whole
from permalake.paths import HOME
from permalake.transparency.log import InvalidLogError, SignedLog
from permalake.transparency.notes import VerifierKey

FILE = HOME / "keys" / "seen_logs.json"


@dataclass(frozen=True)
class SeenLog:
    """A log as this machine saw it last.

    Attributes:
        key: Line of the public key.
        root: Root over its first ``size`` entries, in hex.
        at: When it was checked, RFC 3339.
    """

    key: str
    size: int
    root: str
    at: str


def seen_logs() -> dict[str, SeenLog]:
    """Return the logs that were checked before, by origin.

    Raises:
        PermalakeError: if the file is damaged: to take it for empty would be to trust anybody anew.
    """
    try:
        return {origin: SeenLog(**seen) for origin, seen in json.loads(FILE.read_text()).items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError):
        raise PermalakeError(
            f"{FILE} is damaged; restore it, or remove it to trust logs as if they were new"
        ) from None


def check_consistent(log: SignedLog, seen: SeenLog) -> None:
    """Check that a log has only grown since it was seen.

    Raises:
        InvalidLogError: if it is older than what this machine saw, or another one with the same name.
    """
    size = log.checkpoint.size
    if size < seen.size:
        raise InvalidLogError(
            f"{log.checkpoint.origin}: the checkpoint is older than one that this machine saw on {seen.at}: "
            f"{size:,} entries instead of {seen.size:,}"
        )
    if log.root_at(seen.size).hex() != seen.root:
        raise InvalidLogError(
            f"{log.checkpoint.origin}: the log was forked: its first {seen.size:,} entries are others than "
            f"this machine saw on {seen.at}"
        )


def remember(log: SignedLog, key: VerifierKey, at: str) -> None:
    """Keep how far a checked log goes, unless another process has seen it go further meanwhile.

    Raises:
        InvalidLogError: if another process has seen another log of that name.
    """
    FILE.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with FILE.with_suffix(".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        logs = seen_logs()
        earlier = logs.get(log.checkpoint.origin)
        if earlier and earlier.size > log.checkpoint.size:
            return
        if earlier:
            check_consistent(log, earlier)
        logs[log.checkpoint.origin] = SeenLog(str(key), log.checkpoint.size, log.checkpoint.root.hex(), at)
        document = {origin: asdict(seen) for origin, seen in logs.items()}
        write_whole(str(FILE), json.dumps(document, indent=1, sort_keys=True).encode())
