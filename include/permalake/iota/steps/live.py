"""Following a node: new milestones with their cones, proven and decoded as days are, into the live head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from permalake.contracts.rows import Row
from permalake.errors import PermalakeError
from permalake.iota.cone.source_records import MilestoneDay
from permalake.iota.cone.verdict import FIRST_CAUSES, refused_days
from permalake.iota.contracts import IOTA_TABLES
from permalake.iota.contracts.unreferenced import HEAD_TABLES
from permalake.iota.permanode.cassandra_head import CassandraHead
from permalake.iota.sources.iota_source import decoded_days
from permalake.iota.sources.node import NodeSource
from permalake.iota.steps.ingest import resolve
from permalake.iota.steps.table_writer import LANDED, TableWriter
from permalake.iota.steps.unreferenced import NAME as UNREFERENCED
from permalake.iota.steps.unreferenced import UnreferencedMessages
from permalake.iota.tables.base_tables import BASE_TABLES
from permalake.iota.tables.milestone_table import CARRIERS, MILESTONE_TABLE, with_messages
from permalake.lake.catalog import ensure
from permalake.lake.counts import day_of
from permalake.lake.head import Head
from permalake.lake.head_position import Reached
from permalake.lake.maintenance.storage import remove_folder
from permalake.lake.task_files import WrittenFile
from permalake.net import object_storage
from permalake.pipeline import alerts
from permalake.pipeline.day_queries import DayQueries, few_rows
from permalake.pipeline.jobs import StepArguments, StepContext
from permalake.pipeline.landing import Written
from permalake.pipeline.live import Advance
from permalake.pipeline.workspace import Workspace
from permalake.stores.following import Follower

LIVE_TABLES = ("milestones", *BASE_TABLES)
_MILESTONE = IOTA_TABLES["milestones"]
_MESSAGE = IOTA_TABLES["messages"].arrow


def follow(work: Workspace, spark: SparkSession, run_id: str) -> IotaHead:
    """Open the node of a network and its head."""
    return IotaHead(work, spark, run_id)


class IotaHead:
    """The head of a network that follows its node, batch by batch."""

    def __init__(self, work: Workspace, spark: SparkSession, run_id: str) -> None:
        contracts = {name: IOTA_TABLES[name] for name in LIVE_TABLES} | HEAD_TABLES
        ensure(work.settings, work.database, work.network, work.domain.tables)
        self.head = Head(work.settings, work.database, work.network, contracts)
        self.head.ensure()
        self._work, self._spark, self._run_id = work, spark, run_id
        self._network = work.settings.network(work.network)
        self._source = NodeSource(spark, work.network, self._network)
        self._idle_at = -1
        self._last: int | None = None  # of the head, when nothing was new
        self._follower: Follower | None = None
        if work.settings.cassandra.configured:
            alert = partial(alerts.store_behind, f"{work.domain.name}_live", run_id, work.network)
            store = CassandraHead(spark, work.settings, work.database, self.head, alert)
            self._follower = Follower(store.write)
        self._unreferenced = UnreferencedMessages(
            self.head, self._source, self._network, work.settings.live.walk_seconds
        )

    def finish(self) -> None:
        """Bring Cassandra, where it is configured, as far as the head is."""
        if self._follower:
            self._follower.finish()

    def close(self) -> None:
        """End what writes into Cassandra; each batch opens the node's connections anew."""
        if self._follower:
            self._follower.close()

    def advance(self) -> Advance | None:
        """Add what the node has confirmed since; None if that is nothing, once its tips are looked at.

        Cassandra, where it is configured, follows in a thread of its own.

        Raises:
            PermalakeError: if the node cannot be asked, contradicts the last milestone, or what it tells
                does not hold.
        """
        added = self._next()
        if self._follower:
            self._follower.wake()
        return added

    def _next(self) -> Advance | None:
        self._source.refresh()
        if self._source.last_milestone == self._idle_at:
            self._look_above()
            return None
        last = self.head.greatest("milestones", "milestone_index")
        if last is not None and last <= self._source.last_milestone:
            self._check_last(last)
        newest = self._source.date_of(self._source.last_milestone)
        oldest = newest - timedelta(days=self._work.settings.live.days - 1)
        first = self._first(last, oldest)
        end = min(self._source.last_milestone, first + self._work.settings.live.batch_milestones - 1)
        if first > end:
            self._idle_at = self._source.last_milestone
            self._last = last
            self._look_above()
            return None
        return self._add(self._source.days_between(first, end), oldest)

    def _look_above(self) -> None:
        """Look above the last milestone, unless the node is behind the head."""
        if self._last is not None and self._last == self._source.last_milestone:
            self._unreferenced.look(self._last)

    def _first(self, last: int | None, oldest: date) -> int:
        """Return the first milestone that is neither in the head nor of a published day, nor too old."""
        published = self.head.newest_published()
        begin = max(oldest, published + timedelta(days=1)) if published else oldest
        return max(self._source.first_of(begin), self._source.first_milestone, (last or 0) + 1)

    def _check_last(self, last: int) -> None:
        """Check that the node still has the milestone that the head or the last published day ends with."""
        is_last = pc.field("milestone_index") == last
        rows = (self.head.rows("milestones"), self.head.published_rows("milestones"))
        tables = [each.to_table(["milestone_id"], filter=is_last) for each in rows]
        proven = {milestone_id for table in tables for milestone_id in table["milestone_id"].to_pylist()}
        milestone_id = self._source.milestone_id(last)
        if milestone_id is not None and proven and milestone_id.hex() not in proven:
            raise PermalakeError(
                f"networks.{self._work.network}.url: the node's milestone {last} is "
                f"{milestone_id.hex()}, the lake has proven {', '.join(proven)}; it is of another tangle, "
                "or does not tell the truth"
            )

    def _add(self, days: Sequence[MilestoneDay], oldest: date) -> Advance:
        landing = f"{self._work.settings.lake.warehouse}/_attempts/live_{uuid4().hex[:12]}"
        self._source.present = self._unreferenced.blocks()
        try:
            written = self._proven(days, landing)
            rows = self._landed_rows(written, days)
        finally:
            remove_folder(landing)
        milestones = pa.Table.from_pylist(rows["milestones"], schema=_MILESTONE.arrow)
        completed, replaced = self._completed(rows["carriers"])
        first, last = days[0].first, days[-1].last
        message_ids = self._message_ids(written)
        above, emptied = self._unreferenced.after(message_ids, last, days[-1].date)
        added = [*written.files, *completed, *self.head.write("milestones", milestones), *above]
        reached = Reached(last, pc.max(milestones["timestamp"]).as_py())
        self.head.commit(added, {"milestones": replaced, UNREFERENCED: emptied}, oldest, reached)
        span = f"milestone {last}" if first == last else f"milestones {first} to {last}"
        return Advance(f"{span}, {len(message_ids)} messages", reached.timestamp)

    def _message_ids(self, written: Written) -> pa.ChunkedArray:
        files = [file.data_file for file in written.files if file.table == "messages"]
        messages = (
            self.head.scan("messages", files).to_table(["message_id"]) if files else _MESSAGE.empty_table()
        )
        return messages["message_id"]

    def _proven(self, days: Sequence[MilestoneDay], landing: str) -> Written:
        """Prove and decode the milestones; their tables' files are not part of the head yet."""
        work, network = self._work, self._network
        targets = tuple(target for target in self.head.targets() if target.table in BASE_TABLES)
        io = object_storage.file_io()
        writer = TableWriter(targets, landing, network.chunk_size, network.v_byte_cost, io)
        written = Written(LANDED)
        table = partial(work.reader.table, self._spark, work.network)
        written.collect(decoded_days(self._source, days, network, table, sink=writer))
        arguments = StepArguments(work.network, days[0].date, days[-1].date, self._run_id)
        context = StepContext(work, arguments, work.domain.steps[0], given=self._spark)
        resolve(context, written, writer, days)
        return written

    def _landed_rows(self, written: Written, days: Sequence[MilestoneDay]) -> dict[str, list[Row]]:
        """Return the milestones, and the messages that carry one.

        Raises:
            PermalakeError: if something does not hold.
        """
        queries = {"causes": FIRST_CAUSES, "milestones": MILESTONE_TABLE, "carriers": CARRIERS}
        rows = few_rows(DayQueries(queries, {}, written.datasets), lambda: self._spark)
        if refused := refused_days(rows["causes"], days):
            self._source.distrust(refused, days)
            raise PermalakeError("; ".join(refused.values()))
        return rows

    def _completed(self, carriers: Sequence[Mapping[str, Any]]) -> tuple[list[WrittenFile], set[str]]:
        """Rewrite files of milestones whose message a later cone has brought.

        Returns:
            The new files, which are not part of the head yet, and the paths of those that they replace.
        """
        written: list[WrittenFile] = []
        replaced: set[str] = set()
        nameless = _MILESTONE.iceberg.find_field("message_id").field_id
        for file in self.head.files("milestones") if carriers else ():
            # Of several messages that carry a milestone, the first of its day counts.
            of_day = [row for row in reversed(carriers) if row["date"] == day_of(file)]
            if not of_day or not (file.null_value_counts or {}).get(nameless):
                continue
            before = self.head.scan("milestones", [file]).to_table()
            after = with_messages(before, {row["milestone_id"]: row["message_id"] for row in of_day})
            if after != before:
                written += self.head.write("milestones", after)
                replaced.add(file.file_path)
        return written, replaced
