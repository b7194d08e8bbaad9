"""Rows of an earlier build that no published day has any more."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame


def stale_keys(
    key: Sequence[str],
    before: Sequence[DataFrame],
    after: DataFrame,
    everywhere: Callable[[], DataFrame],
) -> DataFrame | None:
    """Return the keys of ``before`` that no longer exist; None if there is none.

    They are neither in ``after`` (the same days as published now) nor in ``everywhere`` (all days: a row may
    have moved to another), which is asked only when a key vanished: rebuilt days alone can bring that about.
    """
    if not before:
        return None
    names = list(key)
    old = reduce(lambda left, right: left.unionByName(right), (frame.select(*names) for frame in before))
    gone = old.distinct().join(after.select(*names), names, "left_anti").localCheckpoint()
    if gone.isEmpty():
        return None
    return gone.join(everywhere().select(*names), names, "left_anti")
