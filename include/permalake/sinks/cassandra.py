"""Rows into Cassandra: written by the Spark connector, deleted by the driver in Spark's workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from permalake.config import CassandraSettings
from permalake.contracts.cassandra_v1 import placed, schema
from permalake.contracts.cql import StoreTable
from permalake.errors import ConfigError, PermalakeError

if TYPE_CHECKING:
    from cassandra.cluster import Session
    from pyspark.sql import DataFrame

FORMAT = "org.apache.spark.sql.cassandra"
_NAME_LIMIT = 48
_SECONDS = 60
_IN_FLIGHT = 64
_COUNT = "rows bigint"


def configured(settings: CassandraSettings) -> bool:
    """Whether anything is published into Cassandra."""
    return bool(settings.contact_points)


def check_names(networks: Iterable[str]) -> None:
    """Every network has keyspaces of its own that Cassandra takes; :class:`ConfigError` names the culprit."""
    owners: dict[str, str] = {}
    for network in networks:
        for keyspace in sorted({keyspace for keyspace, _ in placed(network, "chrysalis")}):
            if len(keyspace) > _NAME_LIMIT or keyspace.startswith("system"):
                raise ConfigError(f"networks.{network}: Cassandra takes no keyspace {keyspace}; rename it")
            if owners.setdefault(keyspace, network) != network:
                raise ConfigError(
                    f"networks.{network}: shares keyspace {keyspace} with {owners[keyspace]}; rename one"
                )


@contextmanager
def session(settings: CassandraSettings) -> Iterator[Session]:
    """A session of the driver; :class:`PermalakeError` when no contact point answers."""
    from cassandra.cluster import (
        EXEC_PROFILE_DEFAULT,
        Cluster,
        ExecutionProfile,
        NoHostAvailable,
    )
    from cassandra.policies import DCAwareRoundRobinPolicy, TokenAwarePolicy

    profile = ExecutionProfile(
        load_balancing_policy=TokenAwarePolicy(DCAwareRoundRobinPolicy(settings.local_dc)),
        request_timeout=_SECONDS,
    )
    cluster = Cluster(
        list(settings.contact_points),
        port=settings.port,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        protocol_version=5,
        connect_timeout=10,
    )
    try:
        yield cluster.connect()
    except NoHostAvailable as error:
        where = ", ".join(f"{point}:{settings.port}" for point in settings.contact_points)
        reason = next((str(fault) for fault in getattr(error, "errors", {}).values()), str(error))
        raise PermalakeError(
            f"Cassandra does not answer at {where} ({' '.join(reason.split())}); check cassandra.* and that "
            "the server is up (`permalake services status`)"
        ) from None
    finally:
        cluster.shutdown()


def ensure(settings: CassandraSettings, network: str, protocol: str) -> bool:
    """Keyspaces, tables, indexes and views of a network exist; whether its main keyspace was missing (and so
    nothing is there)."""
    keyspaces = {keyspace for keyspace, _ in placed(network, protocol)}
    with session(settings) as connected:
        known = set(connected.cluster.metadata.keyspaces)
        for statement in schema(network, protocol, settings.local_dc, settings.replication):
            connected.execute(statement)
    return not keyspaces <= known


def write(
    frame: DataFrame, settings: CassandraSettings, keyspace: str, table: StoreTable, micros: int
) -> None:
    """Write whole rows with write time ``micros``: a null overwrites, and of two publishes the later wins."""
    (
        frame.write.format(FORMAT)
        .mode("append")
        .options(**_connector(settings), keyspace=keyspace, table=table.name)
        .option("spark.cassandra.output.timestamp", str(micros))
        .option("spark.cassandra.output.ignoreNulls", "false")
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


def _connector(settings: CassandraSettings) -> dict[str, str]:
    return {
        "spark.cassandra.connection.host": ",".join(settings.contact_points),
        "spark.cassandra.connection.port": str(settings.port),
        "spark.cassandra.connection.localDC": settings.local_dc,
    }


def _deleter(
    settings: CassandraSettings, keyspace: str, table: StoreTable, micros: int
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    matched = " AND ".join(f"{name} = ?" for name in table.key)
    statement = f"DELETE FROM {keyspace}.{table.name} USING TIMESTAMP {micros} WHERE {matched}"  # noqa: S608

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from cassandra.concurrent import execute_concurrent_with_args

        with session(settings) as connected:
            prepared = connected.prepare(statement)
            for batch in batches:
                keys: Any = zip(*(column.to_pylist() for column in batch.columns), strict=True)
                execute_concurrent_with_args(connected, prepared, list(keys), concurrency=_IN_FLIGHT)
                yield pa.RecordBatch.from_pydict({"rows": pa.array([batch.num_rows], pa.int64())})

    return run
