"""Changes by a later publication of a day, row by row: the lake keeps what it published before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import duckdb
import pyarrow.dataset as ds
from sqlalchemy import select

from permalake.contracts import Table
from permalake.contracts.namespaces import Namespaces
from permalake.contracts.sql_text import alike, identifier
from permalake.engine.connection import connect
from permalake.lake.database import Database
from permalake.lake.published import check_history, dataset, past_state
from permalake.lake.state import publication_tables, publications
from permalake.transparency.digest import counted_columns
from permalake.transparency.manifest import KINDS_WITH_DAYS
from permalake.transparency.row_differences import key_text, place, value_text

MOST_ROWS = 100_000
"""Rows of a table's day, of either publication, that are compared."""
MOST_SHOWN = 5
"""Rows that differ that are named."""
_MOST_COLUMNS = 4
_MEMORY = "512MB"
_SIDES = ("before", "after")


@dataclass(frozen=True)
class TableCorrection:
    """The change of a table's day: rows before and after, and how many of them differ.

    ``added``, ``removed`` and ``changed`` (the same key, other values) are None where there are too many rows
    to compare; ``first`` has the first rows that differ, each its key and what became of it, in words.
    """

    table: str
    before: int
    after: int
    added: int | None = None
    removed: int | None = None
    changed: int | None = None
    first: tuple[tuple[str, str], ...] = ()


def publications_of(database: Database, network: str, day: date) -> list[Mapping[str, Any]]:
    """Return the publications that have a day, newest first: ``id``, ``kind`` and ``published_at``."""
    query = (
        select(publications.c.id, publications.c.kind, publications.c.published_at)
        .where(publications.c.network == network, publications.c.kind.in_(KINDS_WITH_DAYS))
        .where(publications.c.start <= day, publications.c.end >= day)
        .order_by(publications.c.id.desc())
    )
    with database.read() as connection:
        rows = connection.execute(query).mappings().all()
    return [{name: row[name] for name in ("id", "kind", "published_at")} for row in rows]


def changes_of(
    database: Database, namespaces: Namespaces, network: str, day: date, numbers: tuple[int, int]
) -> list[TableCorrection]:
    """Return what a publication changed of a day, by table, compared with an earlier one.

    Args:
        database: The lake's catalog.
        namespaces: Contracts by network.
        network: The network.
        day: The day.
        numbers: The earlier publication and the later one.

    Raises:
        PermalakeError: if maintenance has forgotten one of them.
    """
    check_history(database, [(network, "")], numbers[0])
    before, after = (past_state(database, namespaces, number) for number in numbers)
    query = select(publication_tables.c.table_name).where(
        publication_tables.c.publication_id == numbers[1], publication_tables.c.network == network
    )
    with database.read() as connection:
        moved = connection.execute(query).scalars().all()
    changes = []
    for name in sorted(moved):
        table = namespaces(network).tables.get(name)
        if table is None:
            continue
        old, new = (dataset(table, state.get((network, name)), day, day) for state in (before, after))
        changes.append(table_correction(old, new, table))
    return changes


def table_correction(before: ds.Dataset, after: ds.Dataset, table: Table) -> TableCorrection:
    """Compare two versions of a table's day."""
    counts = before.count_rows(), after.count_rows()
    if max(counts) > MOST_ROWS:
        return TableCorrection(table.name, *counts)
    names = [name for name, _ in counted_columns(table)]
    key = [name for name in table.key if name in names] or names
    listed = ", ".join(f'"{name}"' for name in names)
    same = alike("gone", "made", *(identifier(name) for name in key))
    order = ", ".join(f'"{name}" ASC NULLS FIRST' for name in dict.fromkeys((*table.order, *key)))
    with connect() as connection:
        connection.execute(f"SET memory_limit = '{_MEMORY}'; SET threads = 1")
        for name, rows in zip(_SIDES, (before, after), strict=True):
            connection.register(name, rows)
        for name, side, other in (("gone", *_SIDES), ("made", *reversed(_SIDES))):
            connection.execute(
                f"CREATE TEMP TABLE {name} AS SELECT {listed} FROM {side} "  # noqa: S608
                f"EXCEPT ALL SELECT {listed} FROM {other}"
            )
        gone, made, changed = (
            _number(connection, f"SELECT count(*) FROM {source}")  # noqa: S608
            for source in ("gone", "made", f"gone JOIN made ON {same}")
        )
        rows = (
            connection.sql(
                f"(SELECT 0 AS _side, * FROM gone ORDER BY {order} LIMIT {MOST_SHOWN}) UNION ALL "  # noqa: S608
                f"(SELECT 1 AS _side, * FROM made ORDER BY {order} LIMIT {MOST_SHOWN})"
            )
            .to_arrow_table()
            .to_pylist()
        )
    return TableCorrection(
        table.name, *counts, made - changed, gone - changed, changed, _first(rows, key, table)
    )


def _number(connection: duckdb.DuckDBPyConnection, sql: str) -> int:
    [(number,)] = connection.execute(sql).fetchall()
    return int(number)


def _first(
    rows: Sequence[Mapping[str, Any]], key: Sequence[str], table: Table
) -> tuple[tuple[str, str], ...]:
    """Return the first rows that differ: key, and what became of the row."""
    pairs: dict[tuple[Any, ...], dict[int, Mapping[str, Any]]] = {}
    for row in rows:
        pairs.setdefault(tuple(row[name] for name in key), {})[row["_side"]] = row
    ordered = sorted(pairs.values(), key=lambda pair: place(next(iter(pair.values())), table.order))
    return tuple(_in_words(pair, table) for pair in ordered[:MOST_SHOWN])


def _in_words(pair: Mapping[int, Mapping[str, Any]], table: Table) -> tuple[str, str]:
    text = key_text(next(iter(pair.values())), table)
    if len(pair) == 1:
        return text, "added" if 1 in pair else "removed"
    before, after = pair[0], pair[1]
    names = [name for name in before if name != "_side" and before[name] != after[name]]
    words = [f"{name}: {value_text(before[name])} → {value_text(after[name])}" for name in names]
    more = len(words) - _MOST_COLUMNS
    return text, "; ".join(words[:_MOST_COLUMNS]) + (f"; and {more} more columns" if more > 0 else "")
