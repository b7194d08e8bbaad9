"""Rows of statements that were asked for, as far as they fit into a number of rows."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from permalake.contracts.rows import Row


class KeptRows:
    """Results by key, ``most`` rows in all; the least recently used go first, a larger one is not kept."""

    def __init__(self, most: int) -> None:
        """Keep nothing yet."""
        self._most = most
        self._held = 0
        self._results: OrderedDict[Hashable, list[Row]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, read: Callable[[], list[Row]]) -> list[Row]:
        """Return the rows of a key, read unless they are kept; threads that ask at once may all read them."""
        with self._lock:
            if key in self._results:
                self._results.move_to_end(key)
                return self._results[key]
        rows = read()
        with self._lock:
            if key not in self._results and _weight(rows) <= self._most:
                self._results[key] = rows
                self._held += _weight(rows)
            while self._held > self._most:
                self._held -= _weight(self._results.popitem(last=False)[1])
        return rows


def _weight(rows: list[Row]) -> int:
    """Return what a result counts as: a key without rows takes room too."""
    return len(rows) + 1
