"""One partitioned look-up table of the Chrysalis permanode, for a batch of days."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from functools import reduce
from typing import TYPE_CHECKING

from permalake.iota.permanode import chrysalis_rows as transforms
from permalake.iota.permanode import chrysalis_schema as store
from permalake.iota.permanode.partitions import KEY, lacking, new_segments, with_partition

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from permalake.contracts.cql import StoreTable
    from permalake.iota.permanode.placement import Placement

    Held = Callable[[DataFrame, StoreTable, str | None], DataFrame]

_PLACE = [*KEY, "partition_id"]


class HintTable:
    """A look-up table and its hints, for a batch of days.

    It places the rows of the days, records where they lie, and returns what to write and what to delete.
    ``held(keys, table, sample)`` reads a table of the store by partition: all rows of the partitions in
    ``keys``, or, with ``sample``, that column of one row of each.
    """

    def __init__(
        self,
        placement: Placement,
        variant: str,
        *,
        size: int,
        micros: int,
        before: Sequence[Mapping[str, DataFrame]],
        today: Mapping[str, DataFrame],
        dates: Sequence[date],
        held: Held,
    ) -> None:
        self._variant = variant
        self._table, self._key, order = transforms.LOOKUPS[variant]
        self._held = held
        rows = transforms.lookups(today)[variant]
        # Kept by checkpoint: Spark works cached frames out again when a table below them is written to, and
        # once the segments are recorded nothing is lacking.
        lack = lacking(rows, placement.of_days(variant, dates)).localCheckpoint()
        self._fresh = lack.limit(0).select(*KEY)
        added = not lack.isEmpty()
        if added:
            ends = placement.ends(lack).localCheckpoint()
            placement.add(new_segments(lack, ends, size))
            self._fresh = lack.join(ends, list(KEY), "left_anti").select(*KEY).distinct()
        # From here on only what is recorded counts.
        segments = placement.of_days(variant, dates)
        if added:
            mine = segments.join(lack.select(*KEY).distinct(), list(KEY), "left_semi")
            placement.index(mine, micros, ends)
        self._placed = with_partition(rows, segments, order).localCheckpoint()
        self._old = [with_partition(transforms.lookups(old)[variant], segments, order) for old in before]

    def rows(self) -> DataFrame:
        """Return rows of the days in their partitions."""
        return transforms.placed(self._variant, self._placed)

    def gone(self) -> DataFrame | None:
        """Return keys that an earlier build of the days had and this one lacks; None without one."""
        if not self._old:
            return None
        keys = [transforms.placed(self._variant, old).select(*self._table.key) for old in self._old]
        return _union(keys).distinct().join(self.rows(), list(self._table.key), "left_anti")

    def hints(self) -> DataFrame:
        """Return hints of all partitions with rows of the days, each with its newest milestone."""
        mine = self._placed.select(*_PLACE, "milestone_index")
        # A key that had no rows before has no hints.
        shared = (
            mine.select(*KEY).distinct().join(self._fresh, list(KEY), "left_anti").select("hint").distinct()
        )
        had = self._held(shared, store.HINTS, None).join(mine.select(*_PLACE).distinct(), _PLACE, "left_semi")
        return transforms.hints(mine.unionByName(had.select(*mine.columns)))

    def hints_gone(self) -> DataFrame | None:
        """Return hints of partitions that an earlier build filled and that are empty now.

        Call it after the rows are written and deleted. None without an earlier build.
        """
        from pyspark.sql import functions as F

        if not self._old:
            return None
        had = _union([old.select(*_PLACE) for old in self._old]).distinct()
        asked = had.join(self._placed.select(*_PLACE), _PLACE, "left_anti").localCheckpoint()
        place = F.col("hint").alias(self._key), F.col("partition_id").cast("short").alias("partition_id")
        left = self._held(asked.select(*place), self._table, "milestone_index").select(
            F.col(self._key).alias("hint"), "partition_id"
        )
        return asked.join(left, ["hint", "partition_id"], "left_anti").select(*store.HINTS.key)


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(lambda left, right: left.unionByName(right), frames)
