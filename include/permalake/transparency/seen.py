"""The logs that this machine has checked: which key signs each, and how far it went.

A log that is shorter than it was, or whose beginning has changed, was rolled back or forked.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from permalake.errors import PermalakeError
from permalake.lake.warehouse_files import write_whole
from permalake.paths import HOME
from permalake.sanitize import shown
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
        places: Where it was read, as :class:`~permalake.transparency.places.Place` names it.
    """

    key: str
    size: int
    root: str
    at: str
    places: tuple[str, ...] = ()


def seen_logs() -> dict[str, SeenLog]:
    """Return the logs that were checked before, by origin.

    Raises:
        PermalakeError: if the file is damaged: to take it for empty would be to trust anybody anew.
    """
    try:
        logs = {origin: SeenLog(**seen) for origin, seen in json.loads(FILE.read_text()).items()}
        return {origin: replace(seen, places=tuple(seen.places)) for origin, seen in logs.items()}
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


def check_place(place: str, origin: str, logs: Mapping[str, SeenLog]) -> None:
    """Check that a place does not show another log than this machine saw there.

    Raises:
        InvalidLogError: if it does: who replaces a log can sign the new one by a key of their own.
    """
    seen_there = {name: seen.at for name, seen in logs.items() if place in seen.places}
    if seen_there and origin not in seen_there:
        earlier, at = max(seen_there.items(), key=lambda entry: entry[1])
        raise InvalidLogError(
            f"{place} shows the log {shown(origin, 80)!r}, and showed {earlier} on {at}: if its publisher "
            "has changed the key, name the new one by --key"
        )


def remember(log: SignedLog, key: VerifierKey, at: str, place: str) -> None:
    """Keep how far a checked log goes, and where, unless another process has seen it go further meanwhile.

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
        places = (*(entry for entry in (earlier.places if earlier else ()) if entry != place), place)
        checkpoint = log.checkpoint
        logs[checkpoint.origin] = SeenLog(str(key), checkpoint.size, checkpoint.root.hex(), at, places)
        document = {origin: asdict(seen) for origin, seen in logs.items()}
        write_whole(str(FILE), json.dumps(document, indent=1, sort_keys=True).encode())
