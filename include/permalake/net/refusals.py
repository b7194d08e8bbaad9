"""Requests that a service refused, shared by all processes of a machine and forgotten after a time.

Other machines ask on their own: a refusal costs each of them one request per period.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from permalake.paths import HOME


class Refusals:
    """Refusals of the service at ``address`` to ``account`` (its key: another one may be allowed more)."""

    def __init__(
        self,
        address: str,
        account: str = "",
        folder: Path | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        place = folder or HOME / "refusals"
        place.mkdir(parents=True, exist_ok=True)
        # Hashed: neither an address nor a key may stand in the name of a file.
        mark = hashlib.sha256(f"{address}\n{account}".encode()).hexdigest()[:16]
        self._file = place / f"{mark}.json"
        self._clock = clock

    def refused(self, subjects: Iterable[str]) -> dict[str, str]:
        """Return the subjects that are refused now, each with what was noted of it."""
        with self._locked() as file:
            noted = self._current(file)
        return {subject: noted[subject][0] for subject in subjects if subject in noted}

    def note(self, refused: dict[str, str], seconds: float) -> None:
        """Remember refused subjects for ``seconds``, each with a word on it."""
        until = self._clock() + seconds
        with self._locked() as file:
            noted = self._current(file) | {name: (word, until) for name, word in refused.items()}
            file.truncate(0)
            json.dump(noted, file)
            file.flush()

    def forget(self, subjects: Iterable[str]) -> None:
        """Drop subjects that were answered after all."""
        gone = set(subjects)
        with self._locked() as file:
            noted = self._current(file)
            if gone & noted.keys():
                file.truncate(0)
                json.dump({name: entry for name, entry in noted.items() if name not in gone}, file)
                file.flush()

    def _current(self, file: IO[str]) -> dict[str, tuple[str, float]]:
        file.seek(0)
        try:
            noted = json.loads(file.read() or "{}")
            now = self._clock()
            return {name: (str(word), float(until)) for name, (word, until) in noted.items() if until > now}
        except (ValueError, TypeError, AttributeError):
            return {}  # a write that was killed half-way: asked again

    @contextmanager
    def _locked(self) -> Iterator[IO[str]]:
        with self._file.open("a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
