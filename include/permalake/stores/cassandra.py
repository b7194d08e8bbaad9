"""Rows into Cassandra: written by the Spark connector, deleted by the driver in Spark's workers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from permalake.config.stores import CassandraSettings
from permalake.contracts.cql import StoreTable
from permalake.errors import ConfigError, PermalakeError
from permalake.stores import cassandra_tls, connector
from permalake.stores.batch import NoteLoss

if TYPE_CHECKING:
    from cassandra.cluster import Cluster, Session
    from cassandra.query import BoundStatement, PreparedStatement, Statement
    from pyspark.sql import DataFrame

FORMAT = "org.apache.spark.sql.cassandra"
_SECONDS = 60
_RECONNECT_SECONDS = 1.0
_IN_FLIGHT = 64
_BATCH_BYTES = 4096
# A server warns of batches over more partitions, and the driver logs each warning.
_BATCH_ROWS = 10
# For each of four tables at once; 64 for each make a server time out at tables with views.
_BATCHES_IN_FLIGHT = 16
_VALUE_BYTES = 12
"""About what a server counts beside the bytes of a value."""
_KEYS = 32
_ROWS = 10_000
_COUNT = "rows bigint"
OUTPUT = {
    "spark.cassandra.output.ignoreNulls": "false",
    # The connector's 5 per task leave a server idle that answers when a write is on disk.
    "spark.cassandra.output.concurrent.writes": str(_BATCHES_IN_FLIGHT),
    # Rows of one server go together, whatever their partitions: most partitions have few rows of a batch.
    # Servers warn of such batches from 5 KiB on.
    "spark.cassandra.output.batch.grouping.key": "replica_set",
    "spark.cassandra.output.batch.size.bytes": str(_BATCH_BYTES),
}
"""Settings of the connector with which this server takes rows fastest."""
_ARROW = {
    "text": pa.string(),
    "blob": pa.binary(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", "UTC"),
}


def cluster_of(
    settings: CassandraSettings, *, seconds: float = _SECONDS, rows: str = "dict", schema: bool = False
) -> Cluster:
    """Return the driver's cluster, which is not connected yet.

    Args:
        settings: Where it is.
        seconds: Time-out of a request.
        rows: ``dict``, ``named`` or ``tuple``. A class with names, made for each answer, costs more than a
            short answer itself.
        schema: Whether to read the schema, which takes longer than a task's work.

    Raises:
        ConfigError: No contact point is set.
    """
    from cassandra.auth import PlainTextAuthProvider
    from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
    from cassandra.policies import ConstantReconnectionPolicy, DCAwareRoundRobinPolicy, TokenAwarePolicy
    from cassandra.query import dict_factory, named_tuple_factory, tuple_factory

    if not settings.contact_points:
        raise ConfigError(
            "cassandra.contact_points: not set; the Airflow connection "
            f"{settings.connection} counts in DAGs alone"
        )
    profile = ExecutionProfile(
        load_balancing_policy=TokenAwarePolicy(DCAwareRoundRobinPolicy(settings.local_dc)),
        request_timeout=seconds,
        row_factory={"dict": dict_factory, "named": named_tuple_factory, "tuple": tuple_factory}[rows],
    )
    login = None
    if settings.username and settings.password:
        login = PlainTextAuthProvider(settings.username, settings.password.get_secret_value())
    return Cluster(
        list(settings.contact_points),
        auth_provider=login,
        ssl_context=cassandra_tls.context(settings),
        port=settings.port,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        protocol_version=5,
        connect_timeout=min(10, seconds),
        control_connection_timeout=seconds,
        reconnection_policy=ConstantReconnectionPolicy(_RECONNECT_SECONDS, max_attempts=None),
        schema_metadata_enabled=schema,
        token_metadata_enabled=schema,
    )


@contextmanager
def session(settings: CassandraSettings, *, plain: bool = False) -> Iterator[Session]:
    """Open a session of the driver; a ``plain`` one reads no schema and gives rows as tuples.

    Raises:
        PermalakeError: No contact point answers, or (a :class:`ConfigError`) the login is refused.
    """
    from cassandra.cluster import NoHostAvailable

    cluster = cluster_of(settings, rows="tuple" if plain else "named", schema=not plain)
    try:
        yield cluster.connect()
    except NoHostAvailable as error:
        raise _unreachable(settings, error) from None
    finally:
        cluster.shutdown()


def _unreachable(settings: CassandraSettings, error: Exception) -> PermalakeError:
    """Return the error that says which servers do not answer, or refuse the login, and what to look at."""
    from cassandra import AuthenticationFailed

    where = ", ".join(f"{point}:{settings.port}" for point in settings.contact_points)
    faults = list(getattr(error, "errors", {}).values()) or [error]
    reason = " ".join(str(faults[0]).split())
    if isinstance(faults[0], AuthenticationFailed):
        login = f"the login {settings.username}" if settings.username else "a session without a login"
        return ConfigError(
            f"Cassandra at {where} refuses {login} ({reason}); check cassandra.username and "
            "PERMALAKE_CASSANDRA__PASSWORD, or the Airflow connection"
        )
    return PermalakeError(
        f"Cassandra does not answer at {where} ({reason}); check cassandra.* and that the server is up "
        "(`permalake services status`)"
    )


def ensure(
    settings: CassandraSettings,
    statements: Iterable[str],
    tables: Iterable[tuple[str, StoreTable]],
    note_loss: NoteLoss = lambda: None,
) -> None:
    """Execute ``statements``, which create what is missing.

    ``note_loss`` is called before them if one of ``tables`` (with their keyspaces) is missing.
    """
    with session(settings) as connected:
        present_tables = {
            (keyspace, table)
            for keyspace, metadata in connected.cluster.metadata.keyspaces.items()
            for table in metadata.tables
        }
        if not present_tables.issuperset((keyspace, table.name) for keyspace, table in tables):
            note_loss()
        for statement in statements:
            connected.execute(statement)


def write(
    frame: DataFrame, settings: CassandraSettings, keyspace: str, table: StoreTable, micros: int
) -> None:
    """Write whole rows with write time ``micros``.

    A null overwrites, and of two publishes the later wins. A write that fails ends all others that are under
    way in this program.
    """
    with connector.writing(frame.sparkSession):
        (
            frame.write.format(FORMAT)
            .mode("append")
            .options(**connector.options(settings), keyspace=keyspace, table=table.name)
            .option("spark.cassandra.output.timestamp", str(micros))
            .options(**OUTPUT)
            .save()
        )


def delete(
    keys: DataFrame, settings: CassandraSettings, keyspace: str, table: StoreTable, micros: int
) -> int:
    """Delete the rows with these primary keys as of write time ``micros``; returns how many keys."""
    deleted = (
        keys.select(*table.key)
        .mapInArrow(_deleter(settings, keyspace, table, micros), _COUNT)
        .agg({"rows": "sum"})
        .first()
    )
    return int(deleted[0] or 0) if deleted else 0


def insert(
    connected: Session,
    keyspace: str,
    table: StoreTable,
    rows: Iterable[Sequence[Any]],
    *,
    micros: int,
    ttl: int,
) -> None:
    """Write whole rows from this process, which vanish after ``ttl`` seconds; a null overwrites."""
    names = ", ".join(table.columns)
    marks = ", ".join("?" for _ in table.columns)
    _execute(
        connected,
        f"INSERT INTO {keyspace}.{table.name} ({names}) VALUES ({marks}) "  # noqa: S608
        f"USING TIMESTAMP {micros} AND TTL {ttl}",
        rows,
    )


def erase(
    connected: Session, keyspace: str, table: StoreTable, keys: Iterable[Sequence[Any]], micros: int
) -> None:
    """Delete the rows with these primary keys as of write time ``micros``, from this process."""
    _execute(connected, _deletion(keyspace, table, micros), keys)


def _execute(connected: Session, statement: str, rows: Iterable[Sequence[Any]]) -> None:
    """Execute a statement that changes a row, for each of some rows, many of them in one request."""
    from cassandra.concurrent import execute_concurrent

    given = list(rows)
    if given:
        # A server may forget the statement. The driver can prepare it again only while it is held here.
        prepared = connected.prepare(statement)
        requests = [(request, None) for request in _requests(prepared, given)]
        execute_concurrent(connected, requests, concurrency=_BATCHES_IN_FLIGHT)
        del prepared


def _requests(prepared: PreparedStatement, rows: Iterable[Sequence[Any]]) -> Iterator[Statement]:
    """Yield unlogged batches of about the connector's size: a request costs more than a row does."""
    from cassandra.query import BatchStatement, BatchType

    def request() -> Statement:
        if len(waiting) == 1:  # A server refuses a batch that is large, and takes a large row.
            return waiting[0]
        batch = BatchStatement(BatchType.UNLOGGED)
        for bound in waiting:
            batch.add(bound)
        return batch

    waiting: list[BoundStatement] = []
    size = 0
    for row in rows:
        bound = prepared.bind(row)
        length = sum(_VALUE_BYTES + len(value) for value in bound.values if isinstance(value, bytes))
        if waiting and (size + length > _BATCH_BYTES or len(waiting) == _BATCH_ROWS):
            yield request()
            waiting, size = [], 0
        waiting.append(bound)
        size += length
    if waiting:
        yield request()


def lookup(
    keys: DataFrame,
    settings: CassandraSettings,
    keyspace: str,
    table: StoreTable,
    sample: str | None = None,
) -> DataFrame:
    """Return all rows of the partitions in ``keys`` (each once).

    With ``sample`` return the partition's key and that column of one of its rows. Each partition is read by
    itself, so the cost is that of the keys alone.
    """
    from pyspark.sql import types as t

    names = list(table.columns) if sample is None else [*table.partition, sample]
    schema = t.StructType([t.StructField(name, table.spark[name].dataType) for name in names])
    return keys.select(*table.partition).mapInArrow(
        _reader(settings, keyspace, table, names, sample is not None), schema
    )


def _asked(batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
    """Return partition keys as the arguments of questions for several at once.

    A question costs the driver more than a short answer does.
    """
    keys = defaultdict(list)
    for *shared, last in zip(*(column.to_pylist() for column in batch.columns), strict=True):
        keys[tuple(shared)].append(last)
    return [
        (*shared, each[first : first + _KEYS])
        for shared, each in keys.items()
        for first in range(0, len(each), _KEYS)
    ]


def _deleter(
    settings: CassandraSettings, keyspace: str, table: StoreTable, micros: int
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    statement = _deletion(keyspace, table, micros)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with session(settings, plain=True) as connected:
            for batch in batches:
                _execute(connected, statement, zip(*(c.to_pylist() for c in batch.columns), strict=True))
                yield pa.RecordBatch.from_pydict({"rows": pa.array([batch.num_rows], pa.int64())})

    return run


def _deletion(keyspace: str, table: StoreTable, micros: int) -> str:
    matched = " AND ".join(f"{name} = ?" for name in table.key)
    return f"DELETE FROM {keyspace}.{table.name} USING TIMESTAMP {micros} WHERE {matched}"  # noqa: S608


def _reader(
    settings: CassandraSettings, keyspace: str, table: StoreTable, names: list[str], first_only: bool
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    *shared, last = table.partition
    matched = " AND ".join([*(f"{name} = ?" for name in shared), f"{last} IN ?"])
    listed = ", ".join(names)
    limit = " PER PARTITION LIMIT 1" if first_only else ""
    statement = f"SELECT {listed} FROM {keyspace}.{table.name} WHERE {matched}{limit}"  # noqa: S608
    schema = pa.schema([(name, _ARROW[table.columns[name]]) for name in names])

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from cassandra.concurrent import execute_concurrent_with_args

        with session(settings, plain=True) as connected:
            prepared = connected.prepare(statement)
            for batch in batches:
                # A lazy answer: what is found is passed on as it comes, however much a key has.
                answers = execute_concurrent_with_args(
                    connected, prepared, _asked(batch), concurrency=_IN_FLIGHT, results_generator=True
                )
                flattened = (row for _, rows in answers for row in rows)
                while rows := list(islice(flattened, _ROWS)):
                    columns = list(zip(*rows, strict=True))
                    yield pa.RecordBatch.from_arrays(
                        [
                            pa.array(values, field.type, from_pandas=False)
                            for values, field in zip(columns, schema, strict=True)
                        ],
                        schema=schema,
                    )

    return run
