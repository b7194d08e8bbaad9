"""The writer of an IOTA network's days into Cassandra: both schemas, ``sync`` last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import TYPE_CHECKING

from permalake.config import Settings
from permalake.contracts.cql import StoreTable
from permalake.contracts.namespaces import live_namespace
from permalake.iota.permanode import chrysalis_rows
from permalake.iota.permanode import chrysalis_schema as chrysalis
from permalake.iota.permanode import stardust_schema as stardust
from permalake.iota.permanode.chrysalis_schema import keyspace_of, placed
from permalake.iota.permanode.hint_tables import HintTable
from permalake.iota.permanode.legacy_outputs import LegacyOutputs
from permalake.iota.permanode.placement import Placement
from permalake.iota.permanode.provisional import ProvisionalMessages, head_micros
from permalake.iota.permanode.provisional_rows import referenced
from permalake.iota.permanode.stardust_rows import STARDUST_ROWS, Rows, nameless
from permalake.lake.catalog import locations
from permalake.lake.identity import open_database
from permalake.lake.state import LIVE
from permalake.stores import cassandra, connector
from permalake.stores.obsolete_rows import stale_keys
from permalake.stores.pinned import Pinned

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from permalake.stores.batch import StoreBatch

_CHRYSALIS_ROWS: dict[str, Rows] = {
    "messages": chrysalis_rows.messages,
    "transactions": chrysalis_rows.transactions,
    "milestones": chrysalis_rows.milestones,
    "sync": chrysalis_rows.sync,
}
# Written with the placement of their rows.
_LOOKUPS = (
    chrysalis.ADDRESSES,
    chrysalis.INDEXES,
    chrysalis.PARENTS,
    chrysalis.HINTS,
    chrysalis.PLACES,
)
# Small tables cost more in planning than in data. These come first: large ones, so that none ends alone, and
# in turn with them those whose rows take time to shape, in which the server digests the large ones.
_AT_ONCE = 4
_FIRST = (
    "parents",
    "addresses_hints",
    "transactions",
    "nft_outputs",
    "messages",
    "alias_outputs",
    "tag_hints",
    "foundry_outputs",
    "basic_outputs",
)
Task = Callable[[], None]


@dataclass(frozen=True)
class _Views:
    """The input of a batch: its days as they were and as they are, and all days of the lake."""

    batch: StoreBatch
    before: list[Pinned]
    today: Pinned
    whole: Pinned


class CassandraDays:
    """The keyspaces of a network as a store of days."""

    def __init__(self, spark: SparkSession, settings: Settings, network: str) -> None:
        self._spark = spark
        self._all_settings = settings
        self._settings = settings.cassandra
        self._network = network
        self._protocol = settings.network(network).protocol
        self._tables = placed(network, self._protocol)

    def recover(self, begun: Sequence[date], micros: int) -> None:
        """Index the placements that interrupted publishes of these days have recorded."""
        # An open session learns of a new keyspace with a delay.
        connector.close_sessions(self._spark)
        if self._protocol != "chrysalis" or not begun:
            return
        placement = Placement(self._spark, self._all_settings, self._network)
        for variant in chrysalis_rows.LOOKUPS:
            placement.index(placement.of_days(variant, begun), micros)

    def write(self, batch: StoreBatch) -> None:
        """Write the rows of the batch's days, and delete rows that are gone.

        ``sync``, which declares a milestone complete, is deleted first and written last. What a live head
        has written is overwritten or deleted.
        """
        is_followed = self._clear_above()
        lake = _Views(
            batch,
            [Pinned(self._spark, state, dates) for state, dates in batch.before()],
            Pinned(self._spark, batch.state, batch.dates),
            Pinned(self._spark, batch.state),
        )
        syncs = [(keyspace, table) for keyspace, table in self._tables if table.name == "sync"]
        for keyspace, table in syncs:
            for old in lake.before:
                self._delete(self._rows(table)(old), keyspace, table, batch)
        # The look-ups first: each is a chain of questions to the store, in whose pauses others write.
        at_once(
            [
                *self._lookup_tasks(lake),
                partial(self._write_legacy, lake),
                *(
                    partial(self._write_table, keyspace, table, lake)
                    for keyspace, table in sorted(self._tables, key=lambda it: _turn(it[1].name))
                    if table.name != "sync" and table not in _LOOKUPS and table is not stardust.LEGACY_OUTPUTS
                ),
            ]
        )
        if is_followed:
            self._delete(nameless(lake.today), keyspace_of(self._network), stardust.MILESTONES, batch)
        for keyspace, table in syncs:
            cassandra.write(self._rows(table)(lake.today), self._settings, keyspace, table, batch.micros)

    def _clear_above(self) -> bool:
        """Delete the rows of messages that the live head has no more; return whether there is a head."""
        database = open_database(self._all_settings)
        messages = ProvisionalMessages(self._all_settings, database, self._network)
        if gone := messages.ids() - messages.ids_above():
            with cassandra.session(self._settings, plain=True) as connected:
                messages.clear(connected, gone, head_micros(database))
        with database.read() as connection:
            return bool(locations(connection, LIVE, live_namespace(self._network)))

    def _write_table(self, keyspace: str, table: StoreTable, lake: _Views) -> None:
        rows = self._rows(table)
        after = rows(lake.today)
        gone = stale_keys(table.key, [rows(old) for old in lake.before], after, lambda: rows(lake.whole))
        self._delete(gone, keyspace, table, lake.batch)
        cassandra.write(after, self._settings, keyspace, table, lake.batch.micros)

    def _rows(self, table: StoreTable) -> Rows:
        if table in chrysalis.CHRYSALIS_TABLES:
            return _CHRYSALIS_ROWS[table.name]
        return STARDUST_ROWS[table.name]

    def _delete(self, keys: DataFrame | None, keyspace: str, table: StoreTable, batch: StoreBatch) -> None:
        if keys is not None:
            cassandra.delete(keys, self._settings, keyspace, table, batch.micros - 1)

    def _write_legacy(self, lake: _Views) -> None:
        if self._protocol != "chrysalis":
            return
        table = stardust.LEGACY_OUTPUTS
        keyspace = keyspace_of(self._network)
        outputs = LegacyOutputs(
            lake.today,
            lake.before,
            lake.whole,
            fresh=[due_day.day for due_day in lake.batch.days if not due_day.states],
            first=min(lake.batch.dates),
            held=lambda ids: referenced(cassandra.lookup(ids, self._settings, keyspace, table)),
        )
        # Written before anything is deleted: a row of another day is nowhere else if this is cut off between.
        cassandra.write(outputs.rows, self._settings, keyspace, table, lake.batch.micros)
        self._delete(outputs.gone(), keyspace, table, lake.batch)

    def _lookup_tasks(self, lake: _Views) -> list[Task]:
        if self._protocol != "chrysalis":
            return []
        placement = Placement(self._spark, self._all_settings, self._network)
        return [partial(self._write_lookup, variant, placement, lake) for variant in chrysalis_rows.LOOKUPS]

    def _write_lookup(self, variant: str, placement: Placement, lake: _Views) -> None:
        table, hints = chrysalis_rows.LOOKUPS[variant][0], chrysalis.HINTS
        homes = {table.name: keyspace for keyspace, table in self._tables if table in _LOOKUPS}
        lookups = HintTable(
            placement,
            variant,
            size=self._settings.partition_size,
            micros=lake.batch.micros,
            before=lake.before,
            today=lake.today,
            dates=lake.batch.dates,
            held=lambda keys, of, sample: cassandra.lookup(keys, self._settings, homes[of.name], of, sample),
        )
        self._delete(lookups.gone(), homes[table.name], table, lake.batch)
        cassandra.write(lookups.rows(), self._settings, homes[table.name], table, lake.batch.micros)
        self._delete(lookups.hints_gone(), homes[hints.name], hints, lake.batch)
        cassandra.write(lookups.hints(), self._settings, homes[hints.name], hints, lake.batch.micros)


def _turn(table: str) -> int:
    return _FIRST.index(table) if table in _FIRST else len(_FIRST)


def at_once(tasks: Sequence[Task]) -> None:
    """Run independent tasks, a few at a time.

    After a failure no other task begins; the error is raised when those under way have ended.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        running = [pool.submit(task) for task in tasks]
        wait(running, return_when=FIRST_EXCEPTION)
        pool.shutdown(cancel_futures=True)
    for task in running:
        if not task.cancelled():
            task.result()
