"""Cassandra as a store of IOTA networks. Loads neither Spark nor the driver before they are used."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from permalake.config import Settings
from permalake.config.stores import CassandraSettings
from permalake.errors import ConfigError
from permalake.iota.permanode.chrysalis_schema import keyspace_of, placed, schema
from permalake.stores.batch import NoteLoss

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from permalake.stores.batch import StoreWriter

_NAME_LIMIT = 48


class CassandraStore:
    """The permanode's keyspaces of a network, in both schemas."""

    name = "cassandra"

    def configured(self, settings: Settings) -> bool:
        """Return whether contact points are configured."""
        return settings.cassandra.configured

    def ensure(self, settings: Settings, network: str, note_loss: NoteLoss) -> None:
        """Create missing keyspaces, tables, indexes and views; ``note_loss`` first, if a table is missing."""
        check_names(settings.networks)
        ensure_keyspaces(settings.cassandra, network, settings.network(network).protocol, note_loss)

    def dataset(self, settings: Settings, network: str) -> tuple[str, str]:
        """Return the first contact point and the keyspace."""
        host = next(iter(settings.cassandra.contact_points), "")
        return f"cassandra://{host}:{settings.cassandra.port}", keyspace_of(network)

    def jars(self) -> tuple[str, ...]:
        """Return the Spark connector's coordinates."""
        from permalake.spark import jars

        return jars.STORE_COORDINATES

    def writer(self, spark: SparkSession, settings: Settings, network: str) -> StoreWriter:
        """Return the writer of both schemas."""
        from permalake.iota.permanode.permanode_writer import CassandraDays

        return CassandraDays(spark, settings, network)


def ensure_keyspaces(
    settings: CassandraSettings, network: str, protocol: str, note_loss: NoteLoss = lambda: None
) -> None:
    """Create what a network of ``protocol`` needs; ``note_loss`` is called first, if a table is missing."""
    from permalake.stores import cassandra

    statements = schema(network, protocol, settings.local_dc, settings.replication)
    cassandra.ensure(settings, statements, placed(network, protocol), note_loss)


def check_names(networks: Iterable[str]) -> None:
    """Raise :class:`ConfigError` unless every network has keyspaces of its own that Cassandra takes."""
    owners: dict[str, str] = {}
    for network in networks:
        for keyspace in sorted({keyspace for keyspace, _ in placed(network, "chrysalis")}):
            if len(keyspace) > _NAME_LIMIT or keyspace.startswith("system"):
                raise ConfigError(f"networks.{network}: Cassandra takes no keyspace {keyspace}; rename it")
            if owners.setdefault(keyspace, network) != network:
                raise ConfigError(
                    f"networks.{network}: shares keyspace {keyspace} with {owners[keyspace]}; rename one"
                )
