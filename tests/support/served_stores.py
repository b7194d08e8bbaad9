"""The synthetic worlds in real stores, written by their clients from expected rows, without Spark.

Tests of the writers prove that a run leaves the same rows there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal

from cassandra.concurrent import execute_concurrent_with_args

from permalake.config import Settings
from permalake.contracts.cql import StoreTable, create_keyspace
from permalake.iota.permanode import stardust_schema as store
from permalake.iota.permanode.chrysalis_schema import keyspace_of
from permalake.lake.catalog import locations
from permalake.lake.identity import open_database
from permalake.lake.state import PUBLISHED
from permalake.stores import bigtable, cassandra, served
from permalake.wormhole.events.families import FAMILIES
from permalake.wormhole.events.store import ensure_tables
from support import expected_cassandra
from support.served_lakes import DATA, NETWORKS

READ = (
    *(store.MESSAGES, store.TRANSACTIONS, store.MILESTONES, store.TAG_HINTS, store.ADDRESSES_HINTS),
    *(store.BASIC_OUTPUTS, store.LEGACY_OUTPUTS, store.TAGS, store.PARENTS, store.SYNC),
)
"""Tables of the permanode that the API reads."""


def with_cassandra(settings: Settings, port: int) -> Settings:
    """The settings of a server that reads IOTA's networks from Cassandra."""
    return settings.model_copy(
        update={
            "cassandra": settings.cassandra.model_copy(
                update={"contact_points": ("127.0.0.1",), "port": port}
            ),
            "serve": settings.serve.model_copy(update={"backend": "stores"}),
        }
    )


def fill_cassandra(settings: Settings) -> None:
    """Write what the API reads of both worlds, and record that the store has them."""
    for protocol, network in NETWORKS.items():
        create(settings, network, READ)
        rows = expected_cassandra.stardust(DATA / protocol / "expected")
        with cassandra.session(settings.cassandra, plain=True) as session:
            for table in READ:
                put(session, f"{keyspace_of(network)}.{table.name}", rows[table.name])
        note(settings, network, "cassandra")


def create(settings: Settings, network: str, tables: Iterable[StoreTable]) -> None:
    """Create tables of a network with their views; a schema that is read costs more than its statements."""
    keyspace = keyspace_of(network)
    with cassandra.session(settings.cassandra, plain=True) as session:
        session.execute(create_keyspace(keyspace, settings.cassandra.local_dc, 1), timeout=60)
        for table in tables:
            for statement in table.ddl(keyspace):
                session.execute(statement, timeout=60)


def put(session, table: str, rows: list[dict], micros: int | None = None) -> None:
    """Insert rows, each with the columns that it has; ``micros``: with what write time, if not now."""
    written = "" if micros is None else f" USING TIMESTAMP {micros}"
    alike = defaultdict(list)
    for row in rows:
        alike[tuple(row)].append(tuple(row.values()))
    for names, values in alike.items():
        marks = ", ".join("?" * len(names))
        statement = session.prepare(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks}){written}")
        execute_concurrent_with_args(session, statement, values, concurrency=32)


def with_bigtable(settings: Settings) -> Settings:
    """The settings of a server that reads Wormhole's events from Bigtable."""
    own = settings.bigtable.model_copy(update={"project": "p", "instance": "i", "table": "served_events"})
    serve = settings.serve.model_copy(update={"backend": "stores"})
    return settings.model_copy(update={"bigtable": own, "serve": serve})


def fill_bigtable(settings: Settings, rows: dict[str, list[dict]]) -> None:
    """Write the rows of the lake's tables as events, and record that the store has them."""
    ensure_tables(settings.bigtable)
    table = bigtable._instance(settings.bigtable).table(settings.bigtable.table)
    events = {}
    for family in FAMILIES:
        for row in rows[family.table.name]:
            event = events.setdefault(row["row_key"], table.direct_row(row["row_key"].encode()))
            for qualifier, column in family.cells.items():
                if row[column] is not None:
                    event.set_cell(family.name, qualifier, spelled(row[column]))
    assert all(status.code == 0 for status in table.mutate_rows(list(events.values())))
    note(settings, "wormhole", "bigtable")


def spelled(value) -> bytes:
    """A value as the text, or the raw bytes, of a cell."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%SZ").encode()
    return (format(value, "f") if isinstance(value, Decimal) else str(value)).encode()


def note(settings: Settings, network: str, store: str) -> None:
    """Record that a store has every published day whole, as a run that wrote them does."""
    with open_database(settings).write() as connection:
        days = served.due(connection, network, store)
        state = locations(connection, PUBLISHED, network)
        served.begin(connection, network, store, days, state)
        served.finish(connection, network, store, days, state)
