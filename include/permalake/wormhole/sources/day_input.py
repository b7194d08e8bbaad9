"""The input of Wormhole days: fetched, its gaps filled, the days of late documents marked stale."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from functools import partial, reduce
from itertools import groupby
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from permalake.config.networks import WormholeSettings
from permalake.lake.day_record import DayRecord
from permalake.lake.status import has_published
from permalake.pipeline.line_files import refuse_damaged
from permalake.pipeline.workspace import Workspace
from permalake.transparency.landed import LandedDays
from permalake.wormhole.sources import (
    guardian,
    observation_files,
    observation_service,
    vaa_files,
    wormhole_source,
)
from permalake.wormhole.sources.guardian import Gap
from permalake.wormhole.sources.published_vaas import LANDED, NOTE, PublishedVaas
from permalake.wormhole.sources.wormhole_source import Days
from permalake.wormhole.tables.documents import signature_count
from permalake.wormhole.tables.late_documents import late_days
from permalake.wormhole.tables.sequence_gaps import gaps

NETWORK = "wormhole"
_MOST_GAPS = 10_000


class WormholeInput:
    """The documents of some days.

    It is made before the attempt begins: days that it marks stale then count as built by that attempt.
    ``landed``: where the days of publishers are landed; ``published`` then holds them.
    """

    def __init__(
        self, spark: SparkSession, work: Workspace, days: Days, landed: LandedDays | None = None
    ) -> None:
        self._spark = spark
        self._work = work
        self._settings = work.settings
        self._section: WormholeSettings = wormhole_source.section(work.settings)
        self._days = days
        self._gaps: list[Gap] = []
        self._fault: str | None = None
        self._observations = observation_service.Fetched()
        self._notes: list[tuple[date, str]] = []
        self.published: PublishedVaas | None = None
        if landed is not None:
            self._land(landed)
            return
        self._mark_late(self._section.source, self._fetched())
        self._mark_late_files()
        self._fill()

    @property
    def documents(self) -> DataFrame:
        """See :func:`wormhole.documents`."""
        if self.published is not None:
            return self.published.documents
        return wormhole_source.documents(self._spark, self._settings, self._section, self._days)

    @property
    def senders(self) -> DataFrame | None:
        """See :func:`wormhole.reported`; None where the source has none."""
        if self.published is not None or not wormhole_source.has_operations(self._section):
            return None
        return wormhole_source.reported(self._spark, self._settings, self._section, self._days)

    def observations(self, quorum: DataFrame) -> DataFrame | None:
        """Return the known observations, see :func:`observation_files.read`; None where there are none.

        Those of the messages in ``quorum``, rows of ``quorum_state``, are requested from a live source.
        """
        if self.published is not None:
            return self.published.observations
        frames = []
        if (path := self._section.observations) is not None:
            given = observation_files.files_of(path)
            frames.append(observation_files.read(self._spark, given, observation_files.NAME))
        if wormhole_source.is_live(self._section):
            if self._section.observation_requests:
                self._observations = observation_service.fetch(
                    self._settings, self._section, _signers(quorum), force=self._days.force
                )
            landed = observation_service.landing(self._settings, self._section)
            if files := landed.paths(observation_files.NAME, *self._days.around):
                frames.append(observation_files.read(self._spark, files, self._section.source))
        return reduce(DataFrame.unionByName, frames) if frames else None

    def report(self, record: DayRecord) -> None:
        """Record which gaps are left, and why."""
        for day, line in self._notes:
            record.note(line, day)
        for day, lines in guardian.missing(self._gaps).items():
            record.report_gaps(day, lines)
        if self._fault:
            record.note(f"gaps: {self._fault}; build again with --force to ask once more")
        for day, count in self._observations.left.items():
            why = self._observations.fault or "as many as observation_requests were sent"
            record.note(f"observations: {count} messages were not asked for, {why}; run it again", day)

    def _land(self, landed: LandedDays) -> None:
        """Land the days of a publisher."""
        days = landed.land(self._days.start, self._days.end, LANDED, force=self._days.force)
        self.published = PublishedVaas(self._spark, days.values())
        for day, landed_day in days.items():
            lines = (landed_day.note, NOTE.format(landed_day.origin), *landed.remarks)
            self._notes += [(day, line) for line in lines]

    def _fetched(self) -> Counter[date]:
        note_news = partial(self._mark_late, self._section.source)
        return wormhole_source.fetch(self._settings, self._section, self._days, note_news)

    def _mark_late(self, source: str, days: Iterable[date]) -> None:
        """Mark days stale: before their first new VAA is stored, and once all are.

        Another run may have built a day in between, and thereby cleared the first mark.
        """
        self._work.builds.mark_stale(NETWORK, days, f"{source}: late VAAs")

    def _mark_late_files(self) -> None:
        files = wormhole_source.new_files(self._settings, self._section)
        paths = [Path(file) for file in files]
        refuse_damaged(paths, "wormhole.path")
        if paths and has_published(self._work.database, NETWORK):
            documents = vaa_files.read_files(self._spark, paths)
            table: Callable[[str], DataFrame] = partial(self._work.reader.table, self._spark, NETWORK)
            self._mark_late("files", late_days(documents, table))
        if files:
            wormhole_source.saw(self._settings, self._section, files)

    def _fill(self) -> None:
        """Close gaps by a guardian where one is configured; know those that stay."""
        asks = self._section.guardian_url is not None
        if not asks and not wormhole_source.is_live(self._section):
            return
        self._gaps = self._found()
        if asks and self._gaps:
            filled = guardian.fill(
                self._settings,
                self._section,
                self._gaps,
                note_news=partial(self._mark_late, guardian.NAME),
                force=self._days.force,
            )
            self._fault = filled.fault
            self._mark_late(guardian.NAME, filled.news)
            if filled.news:
                self._gaps = self._found()

    def _found(self) -> list[Gap]:
        rows = gaps(self.documents, self._days.start, self._days.end)
        shortest = rows.orderBy(
            rows["last"] - rows["first"], "date", "emitter_chain", "emitter_address", "first"
        )
        return [
            Gap(
                row["date"], row["emitter_chain"], row["emitter_address"], int(row["first"]), int(row["last"])
            )
            for row in shortest.limit(_MOST_GAPS).collect()
        ]


def _signers(quorum: DataFrame) -> Iterator[tuple[date, dict[str, int]]]:
    """Yield the messages of each day with the number of their signatures."""
    count = signature_count(F.col("signed_vaa")).alias("count")
    rows = quorum.select("date", "row_key", count).orderBy("date", "row_key").toLocalIterator()
    for day, of_day in groupby(rows, key=lambda row: row["date"]):
        yield day, {_identity(row["row_key"]): row["count"] for row in of_day}


def _identity(row_key: str) -> str:
    chain, emitter, sequence = row_key.split(":")
    return f"{chain}/{emitter}/{int(sequence)}"
