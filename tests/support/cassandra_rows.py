"""Rows of a Cassandra table as plain values."""

from __future__ import annotations

from permalake.stores import cassandra


def held(settings, keyspace, name):
    """All rows of a table or view, each a dict of the columns that are not null."""
    with cassandra.session(settings, plain=True) as session:
        rows = session.execute(f"SELECT * FROM {keyspace}.{name}")
        return [
            {
                field: plain(value)
                for field, value in zip(rows.column_names, row, strict=True)
                if value is not None
            }
            for row in rows
        ]


def plain(value):
    return value.date() if hasattr(value, "days_from_epoch") else value


def as_set(rows):
    return {tuple(sorted(row.items())) for row in rows}
