"""The events of the live head in Bigtable: each message as its day would have it, within a batch's time.

A store's record of days (:mod:`permalake.stores.served`) says which states of the head may have left rows
there, before they are written. So whoever writes next knows what differs, whatever failed or was killed
meanwhile; and the day's own publication deletes what it does not have, as rows of an earlier build.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import date
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.manifest import DataFile

from permalake.config import Settings
from permalake.contracts.namespaces import live_namespace
from permalake.lake import leases
from permalake.lake.catalog import UnreadableTableError, locations
from permalake.lake.counts import day_of, files_between, is_readable
from permalake.lake.database import Database
from permalake.lake.head import Head, rows_among
from permalake.lake.head_edit import published_among
from permalake.lake.published import dataset
from permalake.lake.state import LIVE
from permalake.spark.tasks import TaskShare
from permalake.stores import bigtable, serve, served
from permalake.stores.bigtable_send import SendLimits
from permalake.stores.following import StoreAttempts
from permalake.stores.served import State
from permalake.wormhole.contracts import WORMHOLE_TABLES
from permalake.wormhole.contracts.tables import OBSERVATIONS
from permalake.wormhole.events.event_cells import COLUMNS, EVENTS, QUERIES
from permalake.wormhole.events.families import FAMILIES, tables_of
from permalake.wormhole.events.signature_cells import key_v1, rows_v1
from permalake.wormhole.events.store import BigtableStore

_STORE = BigtableStore.name
_PUBLICATION = FAMILIES[0].table.name
_TABLES = (*(family.table.name for family in FAMILIES), OBSERVATIONS.name)
_AT_ONCE = 5_000
_SEND_LIMITS = SendLimits(5.0, 2)
_States = tuple[tuple[tuple[str, str], ...], ...]


class HeadEvents:
    """The configured event tables, which follow a head. Nothing that fails there stops the head."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        head: Head,
        alert: Callable[[str], None],
    ) -> None:
        self._settings, self._database, self._head = settings, database, head
        self._run_id = f"live-{uuid.uuid4().hex[:12]}"
        self._reference = settings.wormhole.reference if settings.wormhole else None
        self._tables = tables_of(settings.bigtable)
        self._is_ready = False
        self._is_behind = True
        self._attempts = StoreAttempts(head.network, "Bigtable", alert, settings.live.max_lag_seconds)

    def send(self, *, is_longer: bool) -> None:
        """Bring the tables to what the head has, if it is longer or something was not taken before."""
        if not self._tables or not (is_longer or self._is_behind):
            return
        self._is_behind = True
        if self._attempts.attempt(self._catch_up_alone):
            self._is_behind = False
        else:
            self._is_ready = False

    def _catch_up_alone(self) -> bool:
        with leases.alone(self._database, self._head.network, _STORE, self._run_id):
            try:
                self._catch_up()
            except UnreadableTableError:
                if not self._forget_unreadable():
                    raise
                self._catch_up()
        return True

    def _forget_unreadable(self) -> bool:
        """Take out of the noted states tables that nobody can read; return whether there were any.

        A head that is damaged is dropped and read from the source again. What the store has of it is then not
        known: the rows of now are written over it.
        """
        noted, _ = self._noted()
        places = {at for states in noted.values() for state in states for at in state.values()}
        readable = {at for at in places if is_readable(at)}
        for day, states in noted.items():
            rest = [{name: at for name, at in state.items() if at in readable} for state in states]
            if rest != states:
                self._note([day], rest)
        return readable != places

    def _catch_up(self) -> None:
        if not self._is_ready:
            serve.ensure(self._database, self._settings, self._head.network, BigtableStore())
            self._is_ready = True
        noted, _ = self._noted()
        for states, days in _alike({day: tuple(map(_frozen, state)) for day, state in noted.items()}):
            if len(states) > 1:  # begun, and maybe not whole
                for before, after in pairwise(states):
                    self._write(dict(before), dict(after), days)
                self._note(days, [dict(states[-1])])
        noted, now = self._noted()
        present = {day_of(file) for file in _files(now, _PUBLICATION).values()}
        last = {day: (_frozen(states[-1]),) for day, states in noted.items()}
        for states, alike in _alike({day: last.get(day, ()) for day in {*present, *last}}):
            base = dict(states[0]) if states else {}
            if base == now:
                continue
            days = self._note(alike, [base, now])
            self._write(base, now, days)
            self._note(days & present, [now])
            self._note(days - present, [])

    def _noted(self) -> tuple[dict[date, list[State]], State]:
        """Return the states of the days that are not published, and the head, in one read."""
        network = self._head.network
        with self._database.read() as connection:
            at = locations(connection, LIVE, live_namespace(network))
            noted = served.provisional(connection, network, _STORE)
        return noted, {name: at[name] for name in _TABLES if name in at}

    def _note(self, days: Collection[date], states: Sequence[State]) -> set[date]:
        """Record states of days; return these but for those that are published by now: nothing is written."""
        with self._database.write() as connection:
            provisional = set(days) - published_among(connection, self._head.network, days)
            served.note(connection, self._head.network, _STORE, provisional, states)
        return provisional

    def _write(self, before: State, after: State, days: Collection[date]) -> None:
        """Write the messages of some days whose rows differ from one state of the head to another."""
        keys = sorted(self._changed(before, after, days))
        for first in range(0, len(keys), _AT_ONCE):
            self._replace(pa.array(keys[first : first + _AT_ONCE], pa.string()), after, days)

    def _changed(self, before: State, after: State, days: Collection[date]) -> set[str]:
        """Return the messages of some days of which a row is in one of two states alone."""
        changed: set[str] = set()
        for name in {*before, *after}:
            old, new = (_files(state, name, days) for state in (before, after))
            left = [file for path, file in old.items() if path not in new]
            come = [file for path, file in new.items() if path not in old]
            if left and come:  # Files that were merged have the same rows.
                old_rows, other = (
                    self._rows(name, some, WORMHOLE_TABLES[name].names) for some in (left, come)
                )
                changed.update(row[0] for row in old_rows ^ other)
            else:
                changed.update(row[0] for row in self._rows(name, [*left, *come], ["row_key"]))
        return changed

    def _rows(self, name: str, some: Sequence[DataFile], columns: Sequence[str]) -> set[tuple[Any, ...]]:
        """Return rows of some files of a table, the key of the message first."""
        if not some:
            return set()
        rows = self._head.scan(name, some).to_table(sorted(columns, key="row_key".__ne__))
        return set(zip(*(column.to_pylist() for column in rows.columns), strict=True))

    def _replace(self, keys: pa.Array, state: State, days: Collection[date]) -> None:
        def rows(name: str) -> pa.Table:
            of_table = dataset(WORMHOLE_TABLES[name], state.get(name), min(days), max(days))
            return rows_among(of_table, "row_key", keys).filter(pc.field("date").isin(list(days)))

        with QUERIES.over(rows).engine(TaskShare("512m", 2)) as engine:
            events = engine.table(QUERIES.tables[EVENTS]).rename_columns(COLUMNS)
        gone = keys.filter(pc.invert(pc.is_in(keys, value_set=events["row_key"].combine_chunks())))
        if len(gone):
            published = self._head.published_rows(_PUBLICATION, every_day=True)
            kept = published.to_table(["row_key"], filter=pc.field("row_key").isin(gone))["row_key"]
            gone = gone.filter(pc.invert(pc.is_in(gone, value_set=kept.combine_chunks())))
        for version, table in self._tables.items():
            rewritten, deleted = events, gone
            if version == "v1":
                rewritten = rows_v1(events, rows(OBSERVATIONS.name), self._reference)
                deleted = pa.array(map(key_v1, gone.to_pylist()), pa.string())
            send = bigtable.sender(self._settings.bigtable, table, _SEND_LIMITS)
            emptied = pa.table({"row_key": deleted})
            send(batch for part in (rewritten, emptied) for batch in part.to_batches())


def _files(state: State, name: str, days: Collection[date] | None = None) -> dict[str, DataFile]:
    """Return the files of a table by path, of some days or all."""
    location = state.get(name)
    data_files = files_between(location, date.min, date.max) if location else ()
    return {file.file_path: file for file in data_files if days is None or day_of(file) in days}


def _frozen(state: State) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(state.items()))


def _alike(states: Mapping[date, _States]) -> Iterator[tuple[_States, set[date]]]:
    """Yield days that are in the same states together."""
    alike: dict[_States, set[date]] = defaultdict(set)
    for day, of_day in states.items():
        alike[of_day].add(day)
    yield from alike.items()
