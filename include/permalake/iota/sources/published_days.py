"""The ``permalake`` source: days that a publisher has exported, landed in the warehouse.

Only bytes are taken over, with the publisher's claims of order, inclusion and conflicts; as those of any
other source, the cone proves them again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from permalake.contracts import Table
from permalake.contracts.steps import MIRRORED
from permalake.iota.codec.milestones import payload_time
from permalake.iota.cone.packs import AS_RECORDS, Packing, in_packs
from permalake.iota.cone.source_records import LOOK_BACK, RECORD, MilestoneDay, Record
from permalake.iota.contracts import IOTA_TABLES
from permalake.iota.sources.milestone_times import days_of
from permalake.net.object_storage import filesystem, inner_path
from permalake.spark.frames import of_rows
from permalake.transparency.landed import LandedDay, LandedDays

_TABLES = [IOTA_TABLES[name] for name in ("milestones", "messages", "consumed_outputs")]
_CONTEXT = [IOTA_TABLES[name] for name in ("milestones", "messages")]


class PublishedDays:
    """Exported days as the source of a network's milestones.

    ``force``: take days too that did not hold before.
    """

    name = MIRRORED

    def __init__(
        self, spark: SparkSession, landed: LandedDays, look_back: int = LOOK_BACK, *, force: bool = False
    ) -> None:
        self._spark, self._landed, self._look_back, self._force = spark, landed, look_back, force
        self._days: dict[date, LandedDay] = {}
        self._before: list[LandedDay] = []
        self._first = self._last = 0

    @property
    def first_milestone(self) -> int:
        """Index of the first milestone that was landed of days in a row; 0 before there is one."""
        return self._first

    @property
    def last_milestone(self) -> int:
        """Index of the last milestone that was landed; 0 before there is one."""
        return self._last

    def days(self, start: date, end: date) -> list[MilestoneDay]:
        """Land the dates of ``start``..``end`` that a publisher has; return those that have milestones.

        Raises:
            PermalakeError: if no publisher can be read, or none has a signed day whole.
        """
        self._days = self._landed.land(start, end, _TABLES, force=self._force)
        index, time = _times(list(self._days.values()))
        days = days_of(index, time, start, end)
        readable = [day for day in days if day.has_milestones]
        if readable:
            self._first, self._last = readable[0].first, readable[-1].last
            self._land_before(readable[0])
        return days

    @property
    def notes(self) -> Iterator[tuple[date, str]]:
        """The day, and whose it is, or which publisher lied or lagged."""
        for day, landed in self._days.items():
            yield day, landed.note
            yield from ((day, remark) for remark in self._landed.remarks)

    def records(self, days: Sequence[MilestoneDay], packing: Packing = AS_RECORDS) -> DataFrame:
        """Return records of the days' milestones and of those before that their cones may refer to."""
        first, last = min(day.first for day in days) - self._look_back, max(day.last for day in days)
        frames = [_records(self._spark, day, _TABLES) for day in self._days.values()]
        frames += [_records(self._spark, day, _CONTEXT) for day in self._before]
        records = reduce(DataFrame.unionByName, frames)
        return in_packs(records.where(F.col("milestone").between(first, last)), packing)

    def distrust(self, refused: Mapping[date, str], days: Sequence[MilestoneDay]) -> None:  # noqa: ARG002
        """Do not take days again that did not hold, unless their publisher signs them anew."""
        for day, reason in refused.items():
            self._landed.refuse(day, reason)

    def _land_before(self, first: MilestoneDay) -> None:
        """Land days before the first one, without a gap, as far as its cones may reach."""
        day = first.date
        while first.first - self._first <= self._look_back:
            before = self._landed.land_before(day, _CONTEXT)
            index, _ = _times([before] if before else [])
            if before is None or not len(index) or int(index.max()) != self._first - 1:
                return  # if that is a gap, the cones say what they lack
            self._before.append(before)
            day, self._first = before.date, int(index.min())


def _times(days: Sequence[LandedDay]) -> tuple[np.ndarray, np.ndarray]:
    """Return indexes and times (unix s) of the days' milestones, as their payloads have them."""
    rows = [_read(day, "milestones", ["milestone_index", "payload"]) for day in days]
    if not rows:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    table = pa.concat_tables(rows)
    times = [payload_time(payload) or 0 for payload in table["payload"].to_pylist()]
    return table["milestone_index"].to_numpy().astype(np.int64), np.array(times, np.int64)


def _read(day: LandedDay, table: str, columns: list[str]) -> pa.Table:
    file = day.file(table)
    if file is None:
        schema = IOTA_TABLES[table].arrow
        return pa.schema([schema.field(name) for name in columns]).empty_table()
    return pq.read_table(inner_path(file), columns=columns, filesystem=filesystem(file))


def _records(spark: SparkSession, day: LandedDay, tables: Sequence[Table]) -> DataFrame:
    frames = [of_rows(spark, [], RECORD)]
    for table, select in _SELECTED.items():
        file = day.file(table) if IOTA_TABLES[table] in tables else None
        if file is not None:
            rows = spark.read.parquet(file).selectExpr(*select)
            frames.append(rows.withColumn("origin", F.lit(f"{day.origin} {day.date}")))
    typed = [frame.select(*(F.col(f.name).cast(f.dataType) for f in RECORD.fields)) for frame in frames]
    return reduce(DataFrame.unionByName, typed)


_SELECTED = {
    "milestones": (
        f"{int(Record.MILESTONE)} AS kind",
        "milestone_index AS milestone",
        "unhex(milestone_id) AS id",
        "payload AS raw",
        "unhex(message_id) AS link",
        *("NULL AS state", "NULL AS conflict", "NULL AS number"),
    ),
    "messages": (
        f"{int(Record.BLOCK)} AS kind",
        "milestone_index AS milestone",
        "unhex(message_id) AS id",
        "message AS raw",
        "NULL AS link",
        "inclusion_state AS state",
        "nullif(conflict_reason, 0) AS conflict",
        "white_flag_index AS number",
    ),
    "consumed_outputs": (
        f"{int(Record.CONSUMED)} AS kind",
        "CASE WHEN transaction_id IS NOT NULL THEN milestone_index ELSE -1 END AS milestone",
        "unhex(output_id) AS id",
        "data AS raw",
        "unhex(transaction_id) AS link",
        *("NULL AS state", "NULL AS conflict", "NULL AS number"),
    ),
}
