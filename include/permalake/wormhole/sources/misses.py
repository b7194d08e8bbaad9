"""Documents that a service did not have when it was asked.

It is asked again seldom: after a day, then after twice as long each time.
"""

from __future__ import annotations

from datetime import date

from permalake.wormhole.sources.document_cache import DocumentCache

_DAY = 86_400
_TRIES = 6


class Misses:
    """The messages, as ``chain/emitter/sequence``, that an answer is missing for, by the day they belong to.

    ``name`` is that of the note in the folder of each day.
    """

    def __init__(self, landed: DocumentCache, name: str) -> None:
        self._landed = landed
        self._name = name
        self._days: dict[date, dict[str, list[float]]] = {}
        self._changed: set[date] = set()

    def is_due(self, day: date, identity: str, now: float) -> bool:
        """Return whether a message is worth a request; ``now`` in unix seconds."""
        last = self._of(day).get(identity)
        if last is None:
            return True
        asked_at, tries = last
        return tries < _TRIES and now >= asked_at + _DAY * 2 ** (tries - 1)

    def add(self, day: date, identity: str, now: float) -> None:
        """Note that the service did not have it."""
        notes = self._of(day)
        notes[identity] = [now, notes.get(identity, [0, 0])[1] + 1]
        self._changed.add(day)

    def save(self) -> None:
        """Write what was noted."""
        for day in self._changed:
            self._landed.write(f"{day}/{self._name}", self._days[day])
        self._changed.clear()

    def _of(self, day: date) -> dict[str, list[float]]:
        if day not in self._days:
            self._days[day] = self._landed.read(f"{day}/{self._name}") or {}
        return self._days[day]
