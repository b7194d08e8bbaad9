"""The writer of an IOTA network's live head into Cassandra: rows that vanish unless a day replaces them.

Cassandra itself lists the milestones that it has: in ``sync``, written last, which vanishes before their rows
do and brings them again. What it has of the messages above is noted in the catalog.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from permalake.contracts import Table
from permalake.contracts.cql import StoreTable
from permalake.iota.contracts.unreferenced import UNREFERENCED_MESSAGES
from permalake.iota.permanode import stardust_schema as store
from permalake.iota.permanode.chrysalis_schema import keyspace_of
from permalake.iota.permanode.permanode_writer import at_once
from permalake.iota.permanode.provisional import ProvisionalMessages, head_micros
from permalake.iota.permanode.provisional_rows import Seen
from permalake.iota.permanode.stardust_rows import STARDUST_ROWS
from permalake.iota.permanode.store import CassandraStore
from permalake.lake import leases
from permalake.lake.published import dataset
from permalake.stores import cassandra, serve
from permalake.stores.following import StoreAttempts

if TYPE_CHECKING:
    from cassandra.cluster import Session
    from pyspark.sql import DataFrame, SparkSession

    from permalake.config import Settings
    from permalake.lake.database import Database
    from permalake.lake.head import Head

OF_MILESTONES = (
    *(store.MESSAGES, store.PARENTS, store.TRANSACTIONS, store.TAGS, store.MILESTONES),
    *(store.BASIC_OUTPUTS, store.ALIAS_OUTPUTS, store.FOUNDRY_OUTPUTS, store.NFT_OUTPUTS),
)
"""Tables that a head fills, but for ``sync``. Each row of theirs is of one milestone: no row of a published
day has its key, which would vanish with it."""
# The message of a milestone comes with a later one, maybe after the run that wrote the milestone.
_WRITTEN_AGAIN = 3


class CassandraHead:
    """Brings Cassandra as far as a head is; a Cassandra that fails never stops the head."""

    def __init__(
        self,
        spark: SparkSession,
        settings: Settings,
        database: Database,
        head: Head,
        alert: Callable[[str], None],
    ) -> None:
        self._spark, self._all_settings, self._database, self._head = spark, settings, database, head
        self._settings = settings.cassandra
        self._network = head.network
        self._keyspace = keyspace_of(head.network)
        self._chunk_size = settings.network(head.network).chunk_size
        self._ttl = settings.live.provisional_seconds
        self._most = settings.live.batch_milestones
        self._messages = ProvisionalMessages(settings, database, head.network)
        self._run_id = f"live-{uuid.uuid4().hex[:12]}"
        self._synced: dict[int, bool] | None = None  # by milestone: with its message? None: to be asked
        self._asked = 0.0
        self._written: dict[str, str] = {}  # the head, by locations, that Cassandra has
        self._attempts = StoreAttempts(head.network, "Cassandra", alert, settings.live.max_lag_seconds)
        self._micros = 0

    def write(self) -> int:
        """Write what Cassandra lacks, a batch of milestones at most; return how many are left.

        A failure is logged on one line; a later call tries again.
        """
        left = self._attempts.attempt(self._write_lacking)
        if left is None:
            self._synced = None
        return left or 0

    def _must_ask(self) -> bool:
        return self._synced is None or time.monotonic() - self._asked > self._ttl / 8

    def _write_lacking(self) -> int:
        if not self._must_ask() and self._head.locations() == self._written:
            return 0
        with leases.alone(self._database, self._network, CassandraStore.name, self._run_id):
            return self._write()

    def _write(self) -> int:
        """Write a batch; return how many milestones are left."""
        is_unsure = self._must_ask()
        if self._synced is None:
            serve.ensure(self._database, self._all_settings, self._network, CassandraStore())
        # Of one read: a message is above the last milestone or below it, never both.
        locations = self._head.locations()
        milestones = self._rows(locations, "milestones", ["milestone_index", "date", "message_id"])
        above = self._rows(locations, UNREFERENCED_MESSAGES.name)
        with cassandra.session(self._settings, plain=True) as connected:
            lacking = self._lacking(connected, milestones)
            batch = lacking.slice(0, self._most)
            # Each write time is later than all before; what goes, goes before what comes.
            self._micros = max(head_micros(self._database), self._micros + 3)
            rows = _RowsOfMilestones(self._spark, self._head.contracts, locations, batch)
            referenced = frozenset(rows.table("messages")["message_id"].to_pylist())
            self._write_above(connected, above, referenced, again=is_unsure)
            if batch.num_rows:
                self._write_milestones(connected, rows, batch)
        left: int = lacking.num_rows - batch.num_rows
        self._written = {} if left else locations
        return left

    def _rows(self, locations: Mapping[str, str], name: str, columns: list[str] | None = None) -> pa.Table:
        return dataset(self._head.contracts[name], locations.get(name)).to_table(columns)

    def _lacking(self, connected: Session, milestones: pa.Table) -> pa.Table:
        """Return the milestones that Cassandra lacks, or has without the message that carries them."""
        indexes = milestones["milestone_index"].to_pylist()
        if self._synced is None or self._must_ask():
            self._synced = dict.fromkeys(sorted(self._sync_of(connected, indexes))[:-_WRITTEN_AGAIN], True)
            self._asked = time.monotonic()
        has = self._synced
        carried = pc.is_valid(milestones["message_id"]).to_pylist()
        at = [
            row
            for row, (index, is_known) in enumerate(zip(indexes, carried, strict=True))
            if index not in has or (is_known and not has[index])
        ]
        return milestones.take(pa.array(at, pa.int64())).sort_by("milestone_index")

    def _sync_of(self, connected: Session, indexes: list[int]) -> Iterator[int]:
        if not indexes:
            return
        first, last = min(indexes), max(indexes)
        statement = connected.prepare(
            f"SELECT milestone_index FROM {self._keyspace}.sync "  # noqa: S608
            "WHERE ms_range_id = ? AND milestone_index >= ? AND milestone_index <= ?"
        )
        for number in range(first // self._chunk_size, last // self._chunk_size + 1):
            yield from (row[0] for row in connected.execute(statement, (number, first, last)))

    def _write_above(
        self, connected: Session, above: pa.Table, referenced: frozenset[str], *, again: bool
    ) -> None:
        """Take out what is no longer above the last milestone, add what is new there.

        Rows of ``referenced`` messages are about to be written. With ``again`` write what is noted once more:
        a write that failed or was killed may have written some rows alone.
        """
        now = set(above["message_id"].to_pylist())
        present_ids = self._messages.ids()
        self._messages.clear(connected, present_ids - now, self._micros, referenced)
        fresh = {
            row["message_id"]: Seen(row["message"], row["est_milestone_index"], row["seen_at"])
            for row in above.to_pylist()
            if row["message_id"] not in present_ids
        }
        if again:
            self._messages.write_again(connected, present_ids & now, self._micros + 1)
        if fresh:
            self._messages.write(connected, fresh, self._micros + 1)

    def _write_milestones(self, connected: Session, rows: _RowsOfMilestones, batch: pa.Table) -> None:
        """Write the rows of milestones as their days will, ``sync`` last."""
        indexes = batch["milestone_index"].to_pylist()
        carried = pc.is_valid(batch["message_id"]).to_pylist()
        named = [index for index, is_known in zip(indexes, carried, strict=True) if is_known]
        nameless = ((index, "") for index in named)
        cassandra.erase(connected, self._keyspace, store.MILESTONES, nameless, self._micros + 1)
        # A query of Spark's for nothing costs as much as one for a batch.
        filled = [table for table in OF_MILESTONES if rows.table(table.name).num_rows]
        at_once([partial(self._insert, connected, table, rows, self._ttl) for table in filled])
        self._insert(connected, store.SYNC, rows, self._ttl // 2)
        if self._synced is not None:
            self._synced.update(zip(indexes, carried, strict=True))

    def _insert(self, connected: Session, table: StoreTable, lake: Mapping[str, DataFrame], ttl: int) -> None:
        rows = STARDUST_ROWS[table.name](lake).toArrow()
        values = zip(*(column.to_pylist() for column in rows.columns), strict=True)
        cassandra.insert(connected, self._keyspace, table, values, micros=self._micros + 2, ttl=ttl)


class _RowsOfMilestones(Mapping[str, "DataFrame"]):
    """Tables of the head by name, with the rows of some milestones alone.

    They are read here, not by Spark: for so few, it would plan longer than it reads.
    """

    def __init__(
        self,
        spark: SparkSession,
        contracts: Mapping[str, Table],
        locations: Mapping[str, str],
        milestones: pa.Table,
    ) -> None:
        self._spark, self._contracts, self._locations = spark, contracts, locations
        self._indexes = milestones["milestone_index"].combine_chunks()
        self._days = pc.min_max(milestones["date"]).as_py()
        self._tables: dict[str, pa.Table] = {}

    def table(self, name: str) -> pa.Table:
        """Return the rows of a table."""
        if name not in self._tables:
            contract, location = self._contracts[name], self._locations.get(name)
            if not len(self._indexes):
                location = None
            of_days = dataset(contract, location, self._days["min"], self._days["max"])
            is_theirs = pc.field("milestone_index").isin(self._indexes)
            # Spark stops at an empty batch, such as a file without these milestones gives.
            self._tables[name] = of_days.to_table(filter=is_theirs).combine_chunks()
        return self._tables[name]

    def __getitem__(self, name: str) -> DataFrame:
        return self._spark.createDataFrame(self.table(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._contracts)

    def __len__(self) -> int:
        return len(self._contracts)
