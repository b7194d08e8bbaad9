"""Bringing the state tables of a catalog database that an earlier release made up to date.

A migration is known by its number, its place in the sequence. Each is applied once and only adds: tables, and
columns that are nullable or have a server default, so that processes of the earlier release go on working
beside. All that are due are applied in one transaction, by one process at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    Integer,
    MetaData,
    String,
    Table,
    func,
    insert,
    inspect,
    select,
    text,
)
from sqlalchemy.schema import CreateColumn

from permalake.lake.advisory_locks import AdvisoryLock

Migration = Callable[[Connection], None]

applied = Table(
    "permalake_schema",
    MetaData(),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("applied_at", String(27), nullable=False),
)


def add_table(table: Table) -> Migration:
    """Return a migration that creates a table with its indexes, unless it is there."""
    return lambda connection: table.create(connection, checkfirst=True)


def add_column(column: Column[Any]) -> Migration:
    """Return a migration that adds a column of a table, with its index, unless it is there."""
    if not column.nullable and column.server_default is None:
        raise ValueError(f"{column}: older rows need a value; make it nullable or give it a server default")

    def migration(connection: Connection) -> None:
        table = column.table
        if column.name not in {present["name"] for present in inspect(connection).get_columns(table.name)}:
            definition = CreateColumn(column).compile(dialect=connection.dialect)
            connection.execute(text(f"ALTER TABLE {table.name} ADD COLUMN {definition}"))
            for index in table.indexes:
                if column.name in index.columns:
                    index.create(connection, checkfirst=True)

    return migration


def pending(connection: Connection, migrations: Sequence[Migration]) -> range:
    """Return the numbers of the migrations that this database lacks, the first being 1."""
    newest = 0
    if inspect(connection).has_table(applied.name):
        newest = connection.execute(select(func.coalesce(func.max(applied.c.number), 0))).scalar_one()
    return range(newest + 1, len(migrations) + 1)


def migrate(connection: Connection, migrations: Sequence[Migration]) -> None:
    """Apply the migrations that are due. The connection's transaction must write."""
    AdvisoryLock.MIGRATION.take(connection)
    applied.create(connection, checkfirst=True)
    for number in pending(connection, migrations):
        migrations[number - 1](connection)
        moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        connection.execute(insert(applied).values(number=number, applied_at=moment))
