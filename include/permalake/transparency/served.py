"""The signed log of a warehouse for a server: read and checked once per checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from permalake.transparency.log import CHECKPOINT, PUBLIC_KEY, Entry, SignedLog, read_log
from permalake.transparency.notes import VerifierKey
from permalake.transparency.places import FolderPlace
from permalake.transparency.signing import FOLDER


@dataclass(frozen=True)
class ServedLog:
    """A log that agrees with its checkpoint, and the public key beside it, which has signed it."""

    log: SignedLog
    key: VerifierKey

    @cached_property
    def days(self) -> dict[str, list[Entry]]:
        """The entries that count, by network, in order of days."""
        by_day: dict[str, list[Entry]] = {}
        for _, entry in sorted(self.log.latest.items()):
            by_day.setdefault(entry.network, []).append(entry)
        return by_day

    @cached_property
    def places(self) -> dict[Entry, int]:
        """The place of each entry in the log, from 0."""
        return {entry: at for at, entry in enumerate(self.log.entries)}

    def entry_at(self, network: str, day: str, publication: int) -> Entry | None:
        """Return the last entry of a day as of a publication; None where it was not signed then."""
        entries = self._by_day.get((network, day), ())
        return next((entry for entry in reversed(entries) if entry.publication <= publication), None)

    @cached_property
    def _by_day(self) -> dict[tuple[str, str], list[Entry]]:
        grouped: dict[tuple[str, str], list[Entry]] = {}
        for entry in self.log.entries:
            grouped.setdefault((entry.network, entry.date), []).append(entry)
        return grouped


def served_log(warehouse: str) -> ServedLog | None:
    """Return the log of a warehouse; None where nothing is signed.

    Raises:
        PermalakeError: if its files are damaged, or do not belong to the key beside it.
    """
    return _read(warehouse, FolderPlace(warehouse).read(f"{FOLDER}/{CHECKPOINT}"))


@lru_cache(maxsize=2)
def _read(warehouse: str, note: bytes | None) -> ServedLog | None:
    """Read the log whose checkpoint is ``note``."""
    place = FolderPlace(warehouse)
    line = place.read(f"{FOLDER}/{PUBLIC_KEY}") if note else None
    if line is None:
        return None
    key = VerifierKey.parse(line.decode(errors="replace"))
    log = read_log(place, FOLDER, [key])
    return ServedLog(log, key) if log else None
