"""Rows of ``legacy_outputs``: whether one is used is part of its key, and another day may decide it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from permalake.iota.permanode.stardust_schema import LEGACY_OUTPUTS
from permalake.iota.permanode.store_columns import shaped

Lake = Mapping[str, DataFrame]

_ID = "output_id"


def legacy_outputs(lake: Lake) -> DataFrame:
    """Return ``legacy_outputs`` in their present state.

    ``is_used`` is true once any day of ``spent`` (output_id, of all published days) has consumed the output.
    ``lake["legacy_outputs"]`` holds the outputs to be written, of any day.
    """
    used = F.col("spent_id").isNotNull()
    spent = lake["spent"].select(F.col("output_id").alias("spent_id")).distinct()
    outputs = lake["legacy_outputs"].join(spent, F.col("output_id") == F.col("spent_id"), "left")
    return shaped(outputs, LEGACY_OUTPUTS, is_used=used)


class LegacyOutputs:
    """The outputs that the days of a batch created or consumed, in their present state.

    Outputs of other days come from the store, where each is found by its id: the lake would have to be read
    as a whole. It tells what the days from the batch's first on consumed, as nothing is consumed before it is
    created. It is read as a whole only when a rebuilt day has lost something.

    ``held`` returns rows of the store by output id.
    """

    def __init__(
        self,
        today: Lake,
        before: Sequence[Lake],
        whole: Lake,
        *,
        fresh: Sequence[date],
        first: date,
        held: Callable[[DataFrame], DataFrame],
    ) -> None:
        created = today["legacy_outputs"]
        touched = [_created(today), _consumed(today)]
        for old in before:
            touched += [_created(old), _consumed(old)]
        # What a day that was never written has created cannot be in the store.
        new = created.where(F.col("date").isin(list(fresh))).select(_ID)
        asked = reduce(lambda left, right: left.unionByName(right), touched).distinct()
        self._held = held(asked.join(new, _ID, "left_anti")).localCheckpoint()
        lost = _lost(before, today, whole)
        elsewhere = self._held.join(_created(today), _ID, "left_anti").join(lost, _ID, "left_anti")
        # A publish that was cut off leaves an output in both states.
        elsewhere = elsewhere.dropDuplicates([_ID])
        later = whole["consumed_outputs"].where(F.col("date") >= F.lit(first))
        spent = _consumed({"consumed_outputs": later})
        if before:
            freed = reduce(lambda a, b: a.unionByName(b), (_consumed(old) for old in before))
            freed = freed.join(_consumed(today), _ID, "left_anti")
            if not freed.isEmpty():
                spent = _consumed(whole)
        columns = [name for name in LEGACY_OUTPUTS.columns if name != "is_used"]
        outputs = created.select(*columns).unionByName(elsewhere.select(*columns))
        self.rows = legacy_outputs({"legacy_outputs": outputs, "spent": spent}).localCheckpoint()

    def gone(self) -> DataFrame:
        """Return keys in the store that are not those of the present state."""
        key = list(LEGACY_OUTPUTS.key)
        return self._held.select(*key).join(self.rows.select(*key), key, "left_anti")


def _lost(before: Sequence[Lake], today: Lake, whole: Lake) -> DataFrame:
    """Return ids that an earlier build of the days created and no published day does now."""
    none = _created(today).limit(0)
    if not before:
        return none
    had = reduce(lambda a, b: a.unionByName(b), (_created(old) for old in before))
    lost = had.distinct().join(_created(today), _ID, "left_anti").localCheckpoint()
    return none if lost.isEmpty() else lost.join(_created(whole), _ID, "left_anti")


def _created(lake: Lake) -> DataFrame:
    return lake["legacy_outputs"].select(_ID)


def _consumed(lake: Lake) -> DataFrame:
    return lake["consumed_outputs"].where("kind = 'legacy'").select(_ID)
