"""The ``chronicle`` source: archive files ``{from}to{to}.log``, a milestone with its messages per line.

The logs name neither the outputs that a milestone consumed nor their contents: both follow from the messages,
from earlier days of the range, and from what the lake has published of days before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from permalake.errors import PermalakeError
from permalake.iota.cone.ledger_history import created_before
from permalake.iota.cone.packs import AS_RECORDS, Packing, in_packs
from permalake.iota.cone.source_records import LOOK_BACK, RECORD, MilestoneDay, Record
from permalake.iota.sources.archive_index import file_spans, file_times, with_damage
from permalake.iota.sources.archive_lines import placed
from permalake.iota.sources.chronicle_records import PACKED, milestone_time, packed
from permalake.iota.sources.milestone_times import Span, days_of
from permalake.iota.sources.source_ends import CHRONICLE_FILE, LONGEST_LOG_LINE
from permalake.pipeline.line_files import inside, line_ranges, read_lines
from permalake.pipeline.line_tasks import range_frame, ranges_in
from permalake.spark.sizes import BROADCAST_ROWS


@dataclass(frozen=True, slots=True)
class PublishedLedger:
    """The published days of a network: their dates, and a table by name."""

    dates: Callable[[], set[date]]
    table: Callable[[str], DataFrame]


class Chronicle:
    """Chronicle archive files as the source of a network's milestones."""

    name = "chronicle"

    def __init__(
        self, spark: SparkSession, path: Path, published: PublishedLedger, look_back: int = LOOK_BACK
    ) -> None:
        self._spark, self._published, self._look_back = spark, published, look_back
        files = [file for file in inside(path, path.rglob("*.log*")) if CHRONICLE_FILE.fullmatch(file.name)]
        if not files:
            raise PermalakeError(f"{path}: no {{from}}to{{to}}.log[.gz] there; set networks.NAME.path")
        spans = file_spans(spark, files, milestone_time, LONGEST_LOG_LINE)
        for file, file_span in spans.items():
            if file_span.damage and file_span.span is None:
                raise PermalakeError(f"{file}: {file_span.damage}; put a whole copy there, or take it away")
        self._file_spans = spans.values()
        self._spans = {file: file_span.span for file, file_span in spans.items() if file_span.span}

    @property
    def first_milestone(self) -> int:
        """Index of the first milestone that the files hold; 0 when they hold none."""
        return min((span.first for span in self._spans.values()), default=0)

    @property
    def last_milestone(self) -> int:
        """Index of the last milestone that the files hold; 0 when they hold none."""
        return max((span.last for span in self._spans.values()), default=0)

    @property
    def last_date(self) -> date:
        """Date of the latest milestone that the files hold; the first of all dates when they hold none."""
        return max((span.last_date for span in self._spans.values()), default=date.min)

    def days(self, start: date, end: date) -> list[MilestoneDay]:
        """Return the dates of ``start``..``end`` that have milestones, in order.

        Raises:
            PermalakeError: if an earlier date has to be built first, or again.
        """
        days = self._days(start, end)
        readable = [day for day in days if day.has_milestones]
        if readable and readable[0].first > self.first_milestone:
            self._check_built_before(readable[0])
        return days

    def records(self, days: Sequence[MilestoneDay], packing: Packing = AS_RECORDS) -> DataFrame:
        """Return records of the days' milestones and of those before that their cones may refer to."""
        begin = min(day.first for day in days)
        first, last = begin - self._look_back, max(day.last for day in days)
        files = [file for file, span in self._spans.items() if span.first <= last and span.last >= first]
        parts = line_ranges(files, LONGEST_LOG_LINE)
        origin = [part.name for part in parts]
        frame = range_frame(self._spark, parts, origin=origin)
        task = _task(begin, self.first_milestone, self.last_milestone)
        rows = frame.mapInArrow(task, from_arrow_schema(PACKED))
        rows = rows.where(F.col("milestone").between(first, last))
        rows = rows.persist(StorageLevel.DISK_ONLY)  # text is read and packed once
        records = rows.select(*RECORD.names).unionByName(self._consumed(rows, begin, days[0].date))
        return in_packs(records, packing)

    def distrust(self, refused: Mapping[date, str], days: Sequence[MilestoneDay]) -> None:
        """Nothing is kept."""

    def _days(self, start: date, end: date) -> list[MilestoneDay]:
        files = [file for file, span in self._spans.items() if span.overlaps(start, end)]
        index, time = file_times(self._spark, files, milestone_time, LONGEST_LOG_LINE)
        return with_damage(days_of(index, time, start, end), start, end, self._file_spans)

    def _check_built_before(self, day: MilestoneDay) -> None:
        """Check that the day before is published as the files have it: inputs come from there."""
        published = self._published.dates()
        near = [span for span in self._spans.values() if span.first < day.first]
        last = max(near, key=lambda span: min(span.last, day.first - 1))
        eve = date.fromordinal(day.date.toordinal() - 1)
        before = self._days(last.first_date, eve)
        if before and before[-1].date in published:
            self._check_whole(before[-1], day)
            return
        unbuilt = [
            unbuilt_day.date
            for unbuilt_day in self._days(min(map(_begins, near)), eve)
            if unbuilt_day.date not in published
        ]
        raise PermalakeError(
            f"{day.date} spends what earlier days created, and {unbuilt[0]} is not published: "
            f"build {unbuilt[0]} first"
        )

    def _check_whole(self, eve: MilestoneDay, day: MilestoneDay) -> None:
        """Check that the day before is published up to the last milestone that the files have of it."""
        cache = self._published.table("date_cache").where(F.col("date") == F.lit(eve.date))
        end = max((row["end_ms"] for row in cache.select("end_ms").collect()), default=-1)
        if end < eve.last:
            extent = f"up to milestone {end} of {eve.last} only" if end >= 0 else "without milestones"
            raise PermalakeError(
                f"{day.date} spends what earlier days created, and {eve.date} is published {extent}: "
                f"build {eve.date} again first"
            )

    def _consumed(self, rows: DataFrame, begin: int, start: date) -> DataFrame:
        """Return records of the outputs that included transactions from milestone ``begin`` on consume."""
        inputs = rows.where((F.col("milestone") >= begin) & F.col("transaction_id").isNotNull()).select(
            "milestone", F.col("transaction_id").alias("link"), F.explode("inputs").alias("output_id")
        )
        if inputs.count() <= BROADCAST_ROWS:  # else both sides are shuffled, the whole history too
            inputs = F.broadcast(inputs)
        ours = F.col("transaction_id").isNotNull() | (F.col("kind") == int(Record.MILESTONE))
        created = rows.where(ours & (F.col("milestone") >= begin)).select(F.inline("created"))
        before = created_before(self._published.table, "chrysalis", start)
        outputs = created.unionByName(before.select("output_id", F.col("data").alias("raw")))
        return outputs.join(inputs, "output_id").select(
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


def _task(
    begin: int, first: int, last: int
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        at = PACKED.get_field_index("origin")
        for part, constants in ranges_in(batches):
            for batch in packed(read_lines(part), begin):
                origin = pa.repeat(constants["origin"], batch.num_rows)
                yield placed(batch.set_column(at, PACKED.field(at), origin), begin, first, last)

    return run


def _begins(span: Span) -> date:
    return span.first_date
