"""The lake as a server reads it: one published state at a time, statements with bound parameters."""

from __future__ import annotations

import re
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from permalake.config import Settings
from permalake.contracts import Table
from permalake.contracts.namespaces import Namespaces, contracts_in, live_namespace
from permalake.contracts.rows import Row
from permalake.contracts.schema import duckdb_type
from permalake.contracts.sql_text import identifier, no_rows, parquet_by_id
from permalake.lake.identity import catalog_id, open_database, warehouse_id
from permalake.lake.serving.copies import RowCopies
from permalake.lake.serving.heads import ServedHeads, head_locations
from permalake.lake.serving.index import LakeIndex, scan_of
from permalake.lake.serving.pool import QueryPool
from permalake.lake.serving.snapshot import (
    EVERYTHING,
    NOTHING,
    LakeSnapshot,
    Scan,
    ServedTable,
    take_snapshot,
)
from permalake.net import object_storage
from permalake.paths import HOME

# A relation makes no copy of the rows, but binds the statement twice, which costs more.
warnings.filterwarnings("ignore", "Arrow output on a DB-API result", UserWarning)
_BATCH = 10_000
_EXPORTS = 2
_INDEXING_SECONDS = 3600


@dataclass(frozen=True)
class LakeQuery:
    """A statement over tables of one network in one published state.

    Attributes:
        snapshot: The state.
        network: The namespace of the tables.
        sql: A SELECT that names tables and views alone (``FROM messages``).
        parameters: What it takes as ``$name``.
        scans: Each table or view that it reads, and what of it. A view reads its tables as far as their own
            scans say.
        deadline: See :meth:`QueryPool.connection`.
        expired: Given to :meth:`LakeReader.abandon`, it cancels the statement.
    """

    snapshot: LakeSnapshot
    network: str
    sql: str
    parameters: Mapping[str, Any]
    scans: Mapping[str, Scan]
    deadline: float
    expired: threading.Event = field(default_factory=threading.Event)


class LakeReader:
    """Reads published states for a server.

    A request takes :meth:`snapshot` once and passes it to every query, so that all it answers is of one
    state. :meth:`refresh` swaps the state after a publication; requests under way keep theirs, whose files
    maintenance leaves for ``[lake] retention_days``. ``cache`` is the folder of the id indices. ``threads``:
    see :class:`QueryPool`. ``observe`` gets each query's tables, its seconds, and the name of its
    error.
    """

    def __init__(
        self,
        settings: Settings,
        namespaces: Namespaces,
        pool_size: int = 4,
        cache: Path | None = None,
        threads: int | None = None,
    ) -> None:
        self._namespaces = namespaces
        self._database = open_database(settings, settings.serve.catalog_wait)
        patience = settings.serve.queue_seconds
        self._pool, self._scans, self._exports = (
            QueryPool(settings.lake.warehouse, size, threads, patience=patience)
            for size in (pool_size, max(pool_size // 2, 1), _EXPORTS)
        )
        # Indexing takes no connection away from requests.
        self._own = QueryPool(settings.lake.warehouse, 1, threads)
        with self._database.read() as connection:
            self.lake_id = str(catalog_id(connection))
        folder = (cache or HOME / "serve") / self.lake_id
        self._index = LakeIndex(folder)
        self._copies = RowCopies(folder)
        self.observe: Callable[[str, float, str | None], None] = lambda *_: None
        self._refreshing = threading.Lock()
        self.heads = ServedHeads(namespaces)
        self._snapshot = self._read(None)

    def _read(self, previous: LakeSnapshot | None) -> LakeSnapshot:
        with self._database.read() as connection:
            snapshot = take_snapshot(connection, self._namespaces, previous)
            heads = head_locations(connection)

        def run(network: str, sql: str, table: str, scan: Scan) -> pa.Table:
            deadline = time.monotonic() + _INDEXING_SECONDS
            return self._run(self._own, LakeQuery(snapshot, network, sql, {}, {table: scan}, deadline))

        if snapshot is not previous:
            self._index.update(snapshot, run)
        self.heads.follow(snapshot, heads)
        return snapshot

    def close(self) -> None:
        """Close the connections."""
        for pool in (self._pool, self._scans, self._exports, self._own):
            pool.close()

    def find(self, snapshot: LakeSnapshot, network: str, table: str, column: str, value: str) -> Scan:
        """Return the scan that holds every row of ``table`` where ``column`` is ``value``, and few others.

        ``column`` is one of the contract's ``lookups``. The scan is empty where there is no such row.
        """
        served = snapshot.table(network, table)
        return scan_of(served, self._index.find(network, table, column, value)) if served else NOTHING

    def copied(
        self, snapshot: LakeSnapshot, network: str, table: str, scan: Scan, *, column: str, value: object
    ) -> list[Row] | None:
        """Return the contract's ``copied`` columns of a scan's rows with a value, without a query.

        None where the copies are not made yet.
        """
        served = snapshot.table(network, table)
        with self._observed({table: scan}):
            return self._copies.find(network, served, scan, column, value) if served else []

    def copy_rows(self, may_continue: Callable[[], bool] = lambda: True) -> None:
        """Make the copies of the newest state for :meth:`copied`; ``may_continue`` is asked between two."""
        snapshot = self._snapshot

        def batches(network: str, sql: str, table: str, scan: Scan) -> Iterator[pa.RecordBatch]:
            deadline = time.monotonic() + _INDEXING_SECONDS
            query = LakeQuery(snapshot, network, sql, {}, {table: scan}, deadline)
            return self._streamed(self._own, query)

        self._copies.follow(snapshot, batches, may_continue)

    def snapshot(self) -> LakeSnapshot:
        """Return the newest state that was read."""
        return self._snapshot

    def refresh(self, before: Callable[[], None] = lambda: None) -> bool:
        """Read the published state again; return whether there was a new publication.

        Args:
            before: Called when a new state was read and requests still get the earlier one.
        """
        with self._refreshing:
            previous, snapshot = self._snapshot, self._read(self._snapshot)
            if snapshot is not previous:
                before()
            self._snapshot = snapshot
            return snapshot is not previous

    def abandon(self, expired: threading.Event) -> None:
        """Cancel the statements with this event, which nobody waits for any more."""
        for pool in (self._pool, self._scans, self._exports):
            pool.expire(expired)

    @property
    def waiting(self) -> int:
        """Number of callers that wait for a connection."""
        return sum(pool.waiting for pool in (self._pool, self._scans, self._exports))

    def rows(self, query: LakeQuery) -> list[Row]:
        """Return the rows of a statement as dictionaries.

        Raises:
            QueryTimeoutError: if it takes too long.
        """
        pool = self._pool_of(query)
        with self._observed(query.scans), pool.connection(query.deadline, query.expired) as connection:
            statement, bound = self._prepared(connection, query)
            answer: pa.Table = connection.execute(statement, {**bound, **query.parameters}).to_arrow_table()
        rows: list[Row] = answer.to_pylist()
        return rows

    def arrow(self, query: LakeQuery) -> pa.Table:
        """Return the rows of :meth:`rows` as Arrow, for many of them."""
        with self._observed(query.scans):
            return self._run(self._pool_of(query), query)

    @contextmanager
    def _observed(self, scans: Mapping[str, Scan]) -> Iterator[None]:
        began, error = time.monotonic(), None
        try:
            yield
        except Exception as failure:
            error = type(failure).__name__
            raise
        finally:
            self.observe("+".join(sorted(scans)), time.monotonic() - began, error)

    def _pool_of(self, query: LakeQuery) -> QueryPool:
        """Return the pool of lookups or that of scans: none of the one waits for the other."""
        return self._pool if all(scan.is_lookup for scan in query.scans.values()) else self._scans

    def _run(self, pool: QueryPool, query: LakeQuery) -> pa.Table:
        with pool.connection(query.deadline, query.expired) as connection:
            statement, bound = self._prepared(connection, query)
            return connection.sql(statement, params={**bound, **query.parameters}).to_arrow_table()

    def batches(self, query: LakeQuery) -> Iterator[pa.RecordBatch]:
        """Return the rows of :meth:`arrow` batch by batch; a connection is taken until the last one."""
        return self._streamed(self._exports, query)

    def _streamed(self, pool: QueryPool, query: LakeQuery) -> Iterator[pa.RecordBatch]:
        with pool.connection(query.deadline, query.expired) as connection:
            statement, bound = self._prepared(connection, query)
            rows = connection.sql(statement, params={**bound, **query.parameters}).to_arrow_reader(_BATCH)
            if rows is not None:
                yield from rows

    def _prepared(
        self, connection: duckdb.DuckDBPyConnection, query: LakeQuery
    ) -> tuple[str, dict[str, Any]]:
        """Return the statement behind a WITH clause that opens its tables, and what that clause binds."""
        scans, contracts = query.scans, contracts_in(self._namespaces, live_namespace(query.network))
        views = {view.name: view for view in self._namespaces(query.network).views if view.name in scans}
        below = {name: EVERYTHING for view in views.values() for name in view.tables}
        clauses, bound = [], {}
        for name, scan in {**below, **scans}.items():
            if name in views:
                continue
            locations = query.snapshot.locations(query.network, name, scan)
            table = query.snapshot.table(query.network, name)
            body = _relation(connection, contracts[name], table, locations)
            body += scan.condition if locations else ""
            clauses.append(f"{name} AS NOT MATERIALIZED ({body})")
            if f"$files_{name}" in body:
                bound[f"files_{name}"] = [object_storage.inner_path(location) for location in locations]
        for name, view in views.items():
            clauses.append(f"{name} AS NOT MATERIALIZED ({view.body()})")
        query_body = re.sub(r"^\s*WITH\b", ", ", query.sql, flags=re.IGNORECASE)
        return f"WITH {', '.join(clauses)} {query_body}", bound


def _relation(
    connection: duckdb.DuckDBPyConnection, contract: Table, table: ServedTable | None, locations: list[str]
) -> str:
    """Return the relation of a table's files, columns found by Iceberg field id; older files lack some."""
    kinds = {column.name: duckdb_type(column.type) for column in contract.columns}
    if table is None or not locations:
        return no_rows(kinds)
    if object_storage.is_object_store(locations[0]):
        source = f"scan of {contract.name}"
        connection.register(source, object_storage.parquet_files(locations, contract.nullable))
        return f"FROM {identifier(source)}"
    if table.is_uniform:
        names = ", ".join(map(identifier, kinds))
        return f"SELECT {names} FROM read_parquet($files_{contract.name})"  # noqa: S608
    return f"FROM {parquet_by_id(f'$files_{contract.name}', kinds, table.field_ids)}"


def has_lake(settings: Settings) -> bool:
    """Return whether the configured warehouse holds a lake, without creating one."""
    return warehouse_id(settings) is not None
