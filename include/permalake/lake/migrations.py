"""Bringing the state tables of a catalog database that an earlier version made up to date.

A step has a name, is taken once, and only adds: tables, and columns that are nullable or have a server
default, so that processes of the earlier version go on working beside. All steps that are due are taken in
one transaction, by one process at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Column, Connection, MetaData, String, Table, insert, inspect, select, text
from sqlalchemy.schema import CreateColumn

Migration = Callable[[Connection], None]

_LOCK = 7_365_211  # any number that nothing else locks by
_own = MetaData()

taken = Table(
    "permalake_migrations",
    _own,
    Column("name", String(100), primary_key=True),
    Column("taken_at", String(27), nullable=False),
)


def add_table(table: Table) -> Migration:
    """Return a migration that creates a table with its indexes, unless it is there."""
    return lambda connection: table.create(connection, checkfirst=True)


def add_column(column: Column[Any]) -> Migration:
    """Return a migration that adds a column of a table, with its index, unless it is there."""
    if not column.nullable and column.server_default is None:
        raise ValueError(f"{column}: older rows need a value; make it nullable or give it a server default")

    def step(connection: Connection) -> None:
        table = column.table
        if column.name not in {known["name"] for known in inspect(connection).get_columns(table.name)}:
            definition = CreateColumn(column).compile(dialect=connection.dialect)
            connection.execute(text(f"ALTER TABLE {table.name} ADD COLUMN {definition}"))
            for index in table.indexes:
                if column.name in index.columns:
                    index.create(connection, checkfirst=True)

    return step


def pending(connection: Connection, steps: Mapping[str, Migration]) -> list[str]:
    """List the steps that this database has not taken, in order."""
    if not inspect(connection).has_table(taken.name):
        return list(steps)
    done = {row.name for row in connection.execute(select(taken.c.name))}
    return [name for name in steps if name not in done]


def migrate(connection: Connection, steps: Mapping[str, Migration]) -> list[str]:
    """Take the steps that are due; return their names. The connection's transaction must write."""
    if connection.dialect.name == "postgresql":  # sqlite's writers wait for each other anyway
        connection.execute(select(text(f"pg_advisory_xact_lock({_LOCK})")))
    taken.create(connection, checkfirst=True)
    due = pending(connection, steps)
    for name in due:
        steps[name](connection)
        moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        connection.execute(insert(taken).values(name=name, taken_at=moment))
    return due
