"""One partitioned look-up table of the Chrysalis permanode, for a batch of days."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from functools import reduce
from typing import TYPE_CHECKING

from permalake.contracts import cassandra_v1 as store
from permalake.transforms import cassandra_chrysalis as transforms
from permalake.transforms.partitions import place, with_partition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from permalake.sinks.placement import Placement

_PLACE = ["variant", "hint", "partition_id"]


class Lookups:
    """Places the rows of the days, records where, and tells what has to be written and what has to go."""

    def __init__(
        self,
        placement: Placement,
        variant: str,
        *,
        size: int,
        before: Sequence[Mapping[str, DataFrame]],
        today: Mapping[str, DataFrame],
        dates: Sequence[date],
    ) -> None:
        from pyspark.sql import functions as F

        self._variant = variant
        self._table, _, order = transforms.LOOKUPS[variant]
        known = placement.known(variant)
        rows = transforms.lookups(today)[variant]
        placed, added = place(rows, known, size, order)
        # What is recorded must be what is written: neither is worked out again afterwards.
        self._placed, self._added = placed.persist(), added.persist()
        if not self._added.isEmpty():
            self._placed.count()
            placement.add(self._added)
        self._old = [
            with_partition(transforms.lookups(old)[variant], known.drop("newest"), order) for old in before
        ]
        self._others = known.where(~F.col("date").isin(list(dates)))

    def rows(self) -> DataFrame:
        """Rows of the days in their partitions."""
        return transforms.placed(self._variant, self._placed)

    def gone(self) -> DataFrame | None:
        """Keys that an earlier build of the days had, and this one has not."""
        if not self._old:
            return None
        keys = [transforms.placed(self._variant, old).select(*self._table.key) for old in self._old]
        return _union(keys).distinct().join(self.rows(), list(self._table.key), "left_anti")

    def hints(self) -> DataFrame:
        """Hints of all partitions of the days' rows."""
        from pyspark.sql import functions as F

        mine = self._placed.groupBy(*_PLACE).agg(F.max("milestone_index").alias("newest"))
        shared = self._others.select(*_PLACE, "newest").join(mine, _PLACE, "left_semi")
        return transforms.hints(mine.unionByName(shared))

    def hints_gone(self) -> DataFrame | None:
        """Hints of partitions in which an earlier build had rows, and no day has now."""
        if not self._old:
            return None
        had = _union([old.select(*_PLACE) for old in self._old]).distinct()
        still = self._placed.select(*_PLACE).unionByName(self._others.select(*_PLACE))
        return had.join(still, _PLACE, "left_anti").select(*store.HINTS.key)

    def close(self) -> None:
        """Give the memory back."""
        self._placed.unpersist()
        self._added.unpersist()


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(lambda left, right: left.unionByName(right), frames)
