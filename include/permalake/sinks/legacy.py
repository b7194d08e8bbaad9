"""Legacy outputs: whether one is used is part of its key in the store, and another day may decide it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from functools import reduce
from typing import TYPE_CHECKING

from permalake.contracts.cassandra import LEGACY_OUTPUTS
from permalake.transforms.cassandra_stardust import legacy_outputs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Lake = Mapping[str, "DataFrame"]


def legacy_rows(touched: Sequence[Lake], whole: Lake) -> DataFrame:
    """Rows in their present state of all outputs that the days of ``touched`` (as published now, and as they
    were) created or consumed; ``whole`` is the lake with all days."""
    ids = reduce(
        lambda left, right: left.unionByName(right),
        [one for lake in touched for one in (_created(lake), _consumed(lake))],
    ).distinct()
    return legacy_outputs(
        {
            "legacy_outputs": whole["legacy_outputs"].join(ids, "output_id", "left_semi"),
            "spent": _consumed(whole).join(ids, "output_id", "left_semi"),
        }
    )


def legacy_keys_gone(
    rows: DataFrame, today: Lake, before: Sequence[Lake], whole: Lake, fresh: Sequence[date]
) -> DataFrame:
    """Keys to delete: of every row that may have been written in its other state (not those of outputs
    created on ``fresh`` days, which were never written), and both states of outputs that were created in
    ``before`` and by no published day."""
    from pyspark.sql import functions as F

    new = today["legacy_outputs"].where(F.col("date").isin(list(fresh))).select("output_id")
    flipped = rows.join(new, "output_id", "left_anti").withColumn("is_used", ~F.col("is_used"))
    gone = [flipped.select(*LEGACY_OUTPUTS.key)]
    for old in before:
        vanished = old["legacy_outputs"].join(_created(whole), "output_id", "left_anti")
        both = legacy_outputs({"legacy_outputs": vanished, "spent": _consumed(old).limit(0)}).select(
            *[name for name in LEGACY_OUTPUTS.key if name != "is_used"],
            F.explode(F.array(F.lit(False), F.lit(True))).alias("is_used"),
        )
        gone.append(both.select(*LEGACY_OUTPUTS.key))
    return reduce(lambda left, right: left.unionByName(right), gone).distinct()


def _created(lake: Lake) -> DataFrame:
    return lake["legacy_outputs"].select("output_id")


def _consumed(lake: Lake) -> DataFrame:
    return lake["consumed_outputs"].where("kind = 'legacy'").select("output_id")
