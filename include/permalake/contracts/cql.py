"""The contract of a Cassandra table, and the CQL that follows from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

Order = tuple[str, str]
"""A clustering column and its direction, ``ASC`` or ``DESC``."""


@dataclass(frozen=True)
class MaterializedView:
    """A materialized view: the whole row, keyed anew."""

    name: str
    partition: tuple[str, ...]
    clustering: tuple[Order, ...]

    @property
    def key(self) -> tuple[str, ...]:
        """Primary key, partition first."""
        return (*self.partition, *(name for name, _ in self.clustering))


@dataclass(frozen=True)
class StoreTable:
    """A Cassandra table: columns with their CQL types, its primary key and what is derived from it.

    ``indexes`` are secondary indexes, name -> column. ``second`` tables are those of the older schema whose
    names clash: they live in a keyspace of their own.
    """

    name: str
    doc: str
    columns: dict[str, str]
    partition: tuple[str, ...]
    clustering: tuple[Order, ...] = ()
    views: tuple[MaterializedView, ...] = ()
    indexes: dict[str, str] = field(default_factory=dict)
    second: bool = False

    @property
    def key(self) -> tuple[str, ...]:
        """Primary key, partition first."""
        return (*self.partition, *(name for name, _ in self.clustering))

    @property
    def spark(self) -> StructType:
        """Spark's schema of the rows; key columns are never null."""
        from pyspark.sql import types as t

        kinds = {
            "text": t.StringType(),
            "blob": t.BinaryType(),
            "tinyint": t.ByteType(),
            "smallint": t.ShortType(),
            "int": t.IntegerType(),
            "bigint": t.LongType(),
            "boolean": t.BooleanType(),
            "timestamp": t.TimestampType(),
            "date": t.DateType(),
        }
        return t.StructType(
            [t.StructField(name, kinds[kind], name not in self.key) for name, kind in self.columns.items()]
        )

    def ddl(self, keyspace: str) -> list[str]:
        """Statements that create the table, its indexes and its views where they are missing."""
        return [
            _create_table(self, keyspace),
            *(
                f"CREATE INDEX IF NOT EXISTS {name} ON {keyspace}.{self.name} ({column})"
                for name, column in self.indexes.items()
            ),
            *(_create_view(self, view, keyspace) for view in self.views),
        ]


def create_keyspace(keyspace: str, datacenter: str, replication: int) -> str:
    """Statement that creates a keyspace; the names come from validated settings."""
    return (
        f"CREATE KEYSPACE IF NOT EXISTS {keyspace}\n"
        f"WITH replication = {{'class': 'NetworkTopologyStrategy', '{datacenter}': {replication}}}\n"
        "AND durable_writes = true"
    )


def _primary_key(partition: tuple[str, ...], clustering: tuple[Order, ...]) -> str:
    first = partition[0] if len(partition) == 1 else f"({', '.join(partition)})"
    return f"PRIMARY KEY ({', '.join((first, *(name for name, _ in clustering)))})"


def _order(clustering: tuple[Order, ...]) -> str:
    if not any(direction == "DESC" for _, direction in clustering):
        return ""
    listed = ", ".join(f"{name} {direction}" for name, direction in clustering)
    return f"\nWITH CLUSTERING ORDER BY ({listed})"


def _create_table(table: StoreTable, keyspace: str) -> str:
    columns = "".join(f"    {name} {kind},\n" for name, kind in table.columns.items())
    key = _primary_key(table.partition, table.clustering)
    return (
        f"CREATE TABLE IF NOT EXISTS {keyspace}.{table.name} (\n{columns}    {key}\n)"
        f"{_order(table.clustering)}"
    )


def _create_view(table: StoreTable, view: MaterializedView, keyspace: str) -> str:
    present = "\nAND ".join(f"{name} IS NOT NULL" for name in view.key)
    return (
        f"CREATE MATERIALIZED VIEW IF NOT EXISTS {keyspace}.{view.name} AS\n"
        f"SELECT * FROM {keyspace}.{table.name}\n"
        f"WHERE {present}\n"
        f"{_primary_key(view.partition, view.clustering)}{_order(view.clustering)}"
    )
