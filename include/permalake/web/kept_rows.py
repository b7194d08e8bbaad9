"""Rows of statements that were asked for, as far as they fit into a number of rows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable

from cachetools import LRUCache, cached

from permalake.contracts.rows import Row

Read = Callable[[], list[Row]]


def kept_rows(most: int) -> Callable[[Hashable, Read], list[Row]]:
    """Return a function that gives the rows of a key: kept ones, else those that it reads.

    It keeps ``most`` rows in all. The least recently used go first; a larger result is not kept. Threads that
    ask at once may all read.
    """
    results: LRUCache[Hashable, list[Row]] = LRUCache(most, getsizeof=_weight)

    @cached(results, key=lambda key, _: key, lock=threading.Lock())
    def rows(_: Hashable, read: Read) -> list[Row]:
        return read()

    return rows


def _weight(rows: list[Row]) -> int:
    """Return what a result counts as: a key without rows takes room too."""
    return len(rows) + 1
