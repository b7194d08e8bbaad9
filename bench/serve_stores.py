"""Cassandra and Bigtable for the benchmark of the REST API: servers of its own, filled from the lake."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import duckdb

from bench.machine import say
from bench.serve_lake import NETWORK, WORMHOLE
from permalake.config import Settings
from permalake.contracts.cql import create_keyspace
from permalake.iota.permanode.chrysalis_schema import keyspace_of
from permalake.iota.permanode.stardust_schema import MESSAGES, MILESTONES, SYNC
from permalake.lake.catalog import locations
from permalake.lake.identity import open_database
from permalake.lake.state import PUBLISHED
from permalake.local.services import control
from permalake.local.services.daemon import free_port
from permalake.stores import cassandra, served
from permalake.wormhole.events.families import FAMILIES
from permalake.wormhole.events.store import ensure_tables

_KEYSPACE = keyspace_of(NETWORK)
_COLUMNS = ("message_id", "version", "message", "milestone_index", "inclusion_state", "conflict_reason")
SELECT = (
    "SELECT message_id, message, milestone_index, inclusion_state, conflict_reason "
    f"FROM {_KEYSPACE}.messages WHERE message_id = ?"
)
"""What the API asks Cassandra for."""
_AT_ONCE = 64
_BATCH = 500


@contextmanager
def stores(folder: Path) -> Iterator[dict[str, str]]:
    """Both servers, empty; yields the sections of the configuration that name them."""
    chosen = control.servers(free_port(), free_port(), folder / "services")
    control.up(chosen, say, folder / "services")
    os.environ["BIGTABLE_EMULATOR_HOST"] = f"127.0.0.1:{chosen['bigtable'].port}"
    try:
        yield {
            "cassandra": f'contact_points = ["127.0.0.1"]\nport = {chosen["cassandra"].port}',
            "bigtable": 'project = "bench"\ninstance = "bench"\ntable = "events"',
        }
    finally:
        for server in chosen.values():
            server.daemon.stop()


def fill_cassandra(settings: Settings, one_of: int) -> int:
    """Write one block of so many and the ``sync`` row of its milestone; record that Cassandra has all days.

    Returns:
        The number of blocks.
    """
    from cassandra.concurrent import execute_concurrent_with_args

    rows = duckdb.execute(
        f"SELECT {', '.join(_COLUMNS)} FROM read_parquet($files, hive_partitioning = false) "
        f"WHERE {sampled(one_of)}",
        {"files": files_of(settings)},
    ).fetchall()
    chunk = settings.network(NETWORK).chunk_size
    indices = sorted({row[_COLUMNS.index("milestone_index")] for row in rows})
    micros = _note(settings, NETWORK, "cassandra")
    with cassandra.session(settings.cassandra, plain=True) as session:
        session.execute(create_keyspace(_KEYSPACE, settings.cassandra.local_dc, 1), timeout=60)
        for table in (MESSAGES, MILESTONES, SYNC):
            session.execute(table.ddl(_KEYSPACE)[0], timeout=60)
        marks = ", ".join("?" * len(_COLUMNS))
        message = session.prepare(
            f"INSERT INTO {_KEYSPACE}.messages ({', '.join(_COLUMNS)}) VALUES ({marks}) "
            f"USING TIMESTAMP {micros}"
        )
        sync = session.prepare(
            f"INSERT INTO {_KEYSPACE}.sync (ms_range_id, milestone_index, synced_by, logged_by) "
            "VALUES (?, ?, 0, 0)"
        )
        execute_concurrent_with_args(session, message, rows, concurrency=_AT_ONCE)
        marked = [(index // chunk, index) for index in indices]
        execute_concurrent_with_args(session, sync, marked, concurrency=_AT_ONCE)
    say(f"Cassandra holds {len(rows):,} blocks")
    return len(rows)


def files_of(settings: Settings) -> str:
    """Return the pattern of the files of blocks."""
    return f"{settings.lake.warehouse}/{NETWORK}/messages/data/**/*.parquet"


def sampled(one_of: int) -> str:
    """Return the condition of the blocks that Cassandra holds."""
    return f"(milestone_index * 7 + white_flag_index) % {int(one_of)} = 0"


def fill_bigtable(settings: Settings) -> None:
    """Write every VAA as an event, and record that Bigtable has all days."""
    from google.cloud.bigtable.data import BigtableDataClient, RowMutationEntry, SetCell

    own = settings.bigtable
    ensure_tables(own)
    families = [family for family in FAMILIES if family.name in ("MessagePublication", "QuorumState")]
    published, state = (
        duckdb.execute(
            "SELECT * FROM read_parquet($files, hive_partitioning = false) ORDER BY row_key",
            {"files": f"{settings.lake.warehouse}/{WORMHOLE}/{family.table.name}/data/**/*.parquet"},
        ).to_arrow_table()
        for family in families
    )
    with BigtableDataClient(project=own.project) as client:
        table = client.get_table(own.instance, own.table)
        for at in range(0, published.num_rows, _BATCH):
            entries = []
            portion = (published.slice(at, _BATCH), state.slice(at, _BATCH))
            for rows in zip(*(one.to_pylist() for one in portion), strict=True):
                cells = [
                    SetCell(family.name, qualifier.encode(), _spelled(row[column]), 1_000_000)
                    for family, row in zip(families, rows, strict=True)
                    for qualifier, column in family.cells.items()
                ]
                entries.append(RowMutationEntry(rows[0]["row_key"], cells))
            table.bulk_mutate_rows(entries)
    _note(settings, WORMHOLE, "bigtable")
    say(f"Bigtable holds {published.num_rows:,} events")


def _spelled(value: object) -> bytes:
    """Return a value as the text, or the raw bytes, of a cell."""
    if isinstance(value, bytes):
        return value
    return (value.strftime("%Y-%m-%dT%H:%M:%SZ") if isinstance(value, datetime) else str(value)).encode()


def _note(settings: Settings, network: str, store: str) -> int:
    """Record that a store has every published day whole, as a run that wrote them does; return its time."""
    with open_database(settings).write() as connection:
        due = served.due(connection, network, store)
        state = locations(connection, PUBLISHED, network)
        micros = served.begin(connection, network, store, due, state)
        served.finish(connection, network, store, due, state)
    return micros


def stored_blocks(settings: Settings, one_of: int) -> Sequence[tuple]:
    """Return id, milestone, file and date of the blocks that Cassandra holds, in order."""
    return duckdb.execute(
        "SELECT message_id, milestone_index, filename, date FROM read_parquet($files, filename = true, "
        f"hive_partitioning = false) WHERE {sampled(one_of)} ORDER BY milestone_index, white_flag_index",
        {"files": files_of(settings)},
    ).fetchall()
