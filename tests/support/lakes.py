"""Building blocks of the lake's tests: days of a synthetic network, staged without Spark."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import date

import pyarrow as pa

from permalake.config import Settings
from permalake.domains import domain_of
from permalake.lake import Attempt, Builds, PinnedAttempt, Publication, Reader, record
from permalake.lake.catalog import ensure
from permalake.lake.identity import open_database
from permalake.lake.task_files import TaskFiles
from permalake.net.object_storage import file_io

NETWORK = "shimmer"
DAY1, DAY2, DAY3 = date(2022, 9, 28), date(2022, 9, 29), date(2022, 9, 30)


class OpenLake:
    """A lake as a test uses it: what it begins or resumes is held as long as the object lives."""

    def __init__(self, settings: Settings) -> None:
        self.database = open_database(settings)
        self.reader = Reader(settings, self.database, domain_of)
        self.builds = Builds(settings, self.database, domain_of)
        self.query = self.reader.query
        self._settings = settings
        self._held = ExitStack()

    def begin(
        self, network: str, start: date, end: date, run_id: str, *, fingerprint: str = "", wait: float = 0.0
    ) -> Attempt:
        return self._held.enter_context(
            self.builds.begin(network, start, end, run_id, fingerprint=fingerprint, wait=wait)
        )

    def resume(self, network: str, run_id: str) -> Attempt:
        return self._held.enter_context(self.builds.resume(network, run_id))

    def pinned(self, network: str, run_id: str) -> PinnedAttempt:
        return self._held.enter_context(self.builds.pinned(network, run_id))

    def publish(self, network: str, run_id: str) -> Publication:
        """Publish what the run has pinned, as the step does in a process of its own."""
        with self.builds.pinned(network, run_id) as pinned:
            return self.builds.publish(pinned)

    def leave(self) -> None:
        """End every block, as a process does that is done."""
        self._held.close()

    def discard(self, attempt: Attempt) -> None:
        """End an attempt without publishing it, as maintenance does with abandoned ones."""
        with self.database.write() as connection:
            record.close(connection, attempt.id, "discarded")

    def ensure(self, network: str) -> None:
        """Create what is missing of a network's tables."""
        ensure(self._settings, self.database, network, domain_of(network).tables)


def settings_of(warehouse: object) -> Settings:
    return Settings(lake={"warehouse": str(warehouse)})  # type: ignore[arg-type]


def put(settings: Settings, attempt: Attempt, table: str, rows: list[dict]) -> None:
    """Replace the attempt's days in a staged table, as tasks of Spark do."""
    contract = domain_of(attempt.network).tables[table]
    files = TaskFiles(attempt.targets([contract]), file_io())
    files.add(table, pa.Table.from_pylist(rows, schema=contract.arrow))
    attempt.stage_files(files.complete(), [contract])


def messages(day: date, milestone: int, count: int) -> list[dict]:
    """Synthetic messages of one milestone; ids are unique per milestone and position."""
    return [
        {
            "message_id": f"{milestone:060x}{index:04x}",
            "version": 2,
            "message": b"synthetic",
            "milestone_index": milestone,
            "white_flag_index": index,
            "inclusion_state": 2,
            "conflict_reason": 0,
            "proof": None,
            "date": day,
        }
        for index in range(count)
    ]


def analytics(day: date, milestone: int, count: int) -> list[dict]:
    return [
        {
            "ms_range_id": 0,
            "milestone_index": milestone,
            "message_count": count,
            "transaction_count": 0,
            "transferred_tokens": 0,
            "date": day,
        }
    ]


def cache(day: date, first: int, last: int) -> list[dict]:
    return [{"date": day, "start_ms": first, "end_ms": last}]


def stage_day(settings: Settings, attempt: Attempt, day: date, milestone: int, count: int) -> None:
    """One milestone with so many messages: three tables that must agree."""
    put(settings, attempt, "messages", messages(day, milestone, count))
    put(settings, attempt, "ms_analytics", analytics(day, milestone, count))
    put(settings, attempt, "date_cache", cache(day, milestone, milestone))


def pass_audit(attempt: Attempt) -> PinnedAttempt:
    """Pin, and pass every day."""
    pinned = attempt.pin()
    for day in pinned.days_with_rows():
        pinned.verdict(day, True)
    return pinned


def build(
    settings: Settings, lake: OpenLake, day: date, milestone: int, count: int, run_id: str
) -> Publication:
    """Begin, stage, audit and publish one day."""
    attempt = lake.begin(NETWORK, day, day, run_id)
    stage_day(settings, attempt, day, milestone, count)
    return lake.builds.publish(pass_audit(attempt))


def state(lake: OpenLake) -> dict[date, tuple[int, int]]:
    """Per day what two tables say about the number of messages, in one read."""
    rows = lake.query(
        "select date, max(m) m, max(a) a from ("
        "  select date, count(*) m, 0 a from shimmer.messages group by date"
        "  union all select date, 0, sum(message_count) from shimmer.ms_analytics group by date"
        ") group by date order by date"
    ).to_pylist()
    return {row["date"]: (int(row["m"]), int(row["a"])) for row in rows}
