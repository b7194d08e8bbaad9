"""The ``chronicle`` source: archive files ``{from}to{to}.log``, a milestone with its messages per line.

The logs name neither the outputs that a milestone consumed nor their contents: both follow from the messages,
from earlier days of the range, and from what the lake has published of days before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from permalake.errors import PermalakeError
from permalake.iota.cone.ledger_history import created_before
from permalake.iota.cone.source_records import LOOK_BACK, RECORD, MilestoneDay, Record
from permalake.iota.sources.archive_index import Span, spans
from permalake.iota.sources.chronicle_records import milestone_times, packed
from permalake.iota.sources.milestone_days import days_of

_FILE = re.compile(r"(\d+)to(\d+)\.log(\.gz)?")


@dataclass(frozen=True, slots=True)
class PublishedLedger:
    """What the lake has published of a network: its dates, and a table by name."""

    dates: Callable[[], set[date]]
    table: Callable[[str], DataFrame]


class Chronicle:
    """Chronicle archive files as the source of a network's milestones."""

    name = "chronicle"

    def __init__(
        self, spark: SparkSession, path: Path, published: PublishedLedger, look_back: int = LOOK_BACK
    ) -> None:
        self._spark, self._published, self._look_back = spark, published, look_back
        files = sorted(file for file in path.rglob("*.log*") if _FILE.fullmatch(file.name))
        if not files:
            raise PermalakeError(f"{path}: no {{from}}to{{to}}.log[.gz] there; set networks.NAME.path")
        self._spans = spans(spark, files, milestone_times)

    @property
    def first_milestone(self) -> int:
        """Index of the first milestone that the files hold; 0 when they hold none."""
        return min((span.first for span in self._spans.values()), default=0)

    def days(self, start: date, end: date) -> list[MilestoneDay]:
        """The dates of ``start``..``end`` that have milestones, in order; :class:`PermalakeError` when an
        earlier date has to be built first."""
        days = self._days(start, end)
        if days and days[0].first > self.first_milestone:
            self._check_built_before(days[0])
        return days

    def records(self, days: Sequence[MilestoneDay]) -> DataFrame:
        """Records of the days' milestones and of those before them that their cones may refer to."""
        begin = min(day.first for day in days)
        first, last = begin - self._look_back, max(day.last for day in days)
        files = [file for file, span in self._spans.items() if span.first <= last and span.last >= first]
        rows = packed(self._spark, files, begin).where(F.col("milestone").between(first, last))
        rows = rows.persist(StorageLevel.DISK_ONLY)  # text is read and packed once
        return rows.select(*RECORD.names).unionByName(self._consumed(rows, begin, days[0].date))

    def distrust(self, refused: Mapping[date, str], days: Sequence[MilestoneDay]) -> None:
        """Nothing is kept."""

    def _days(self, start: date, end: date) -> list[MilestoneDay]:
        files = [file for file, span in self._spans.items() if span.overlaps(start, end)]
        return days_of(milestone_times(self._spark, files), start, end) if files else []

    def _check_built_before(self, day: MilestoneDay) -> None:
        """The day before, as the files have it, is published: inputs come from there."""
        published = self._published.dates()
        near = [span for span in self._spans.values() if span.first < day.first]
        last = max(near, key=lambda span: min(span.last, day.first - 1))
        eve = date.fromordinal(day.date.toordinal() - 1)
        before = self._days(last.first_date, eve)
        if before and before[-1].date in published:
            return
        unbuilt = [one.date for one in self._days(min(map(_begins, near)), eve) if one.date not in published]
        raise PermalakeError(
            f"{day.date} spends what earlier days created, and {unbuilt[0]} is not published: "
            f"build {unbuilt[0]} first"
        )

    def _consumed(self, rows: DataFrame, begin: int, start: date) -> DataFrame:
        """Records of the outputs that included transactions of milestones from ``begin`` on consume."""
        wanted = rows.where((F.col("milestone") >= begin) & F.col("transaction_id").isNotNull()).select(
            "milestone", F.col("transaction_id").alias("link"), F.explode("inputs").alias("output_id")
        )
        ours = F.col("transaction_id").isNotNull() | (F.col("kind") == int(Record.MILESTONE))
        created = rows.where(ours & (F.col("milestone") >= begin)).select(F.inline("created"))
        before = created_before(self._published.table, "chrysalis", start)
        outputs = created.unionByName(before.select("output_id", F.col("data").alias("raw")))
        return outputs.join(F.broadcast(wanted), "output_id").select(
            F.lit(int(Record.CONSUMED)).cast("byte").alias("kind"),
            "milestone",
            F.col("output_id").alias("id"),
            "raw",
            "link",
            F.lit(None).cast("byte").alias("state"),
            F.lit(None).cast("short").alias("conflict"),
            F.lit(None).cast("int").alias("number"),
            F.lit("outputs created before").alias("origin"),
        )


def _begins(span: Span) -> date:
    return span.first_date
