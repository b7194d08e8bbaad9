"""Enriched tables of Wormhole days and other queries, over rows without a lake."""

from __future__ import annotations

import pyarrow as pa

from permalake.engine.duckdb_engine import DuckDBEngine
from permalake.pipeline.day_queries import cast, levels, names_in
from permalake.wormhole.contracts import WORMHOLE_TABLES
from permalake.wormhole.reference import load_reference
from permalake.wormhole.tables import enriched_tables as made
from permalake.wormhole.tables.amount_queries import functions


def enriched_rows(given, *names):
    """The rows of the tables ``names`` as their contracts have them.

    ``given``: rows (mappings) by table or name in ``INPUTS``; columns that they lack are null.
    """
    every = made.enriched_tables(load_reference().chains)
    queries = {name: every[name] for name in names}
    read = names_in(" ".join(queries.values()), {*WORMHOLE_TABLES, *made.INPUTS}) - set(queries)
    engine = _engine({name: _table(name, given.get(name, [])) for name in read})
    try:
        for name in (one for group in levels(queries) for one in group):
            engine.keep(name, cast(queries[name], WORMHOLE_TABLES[name]))
        return {name: engine.rows(f"SELECT * FROM {name}") for name in queries}
    finally:
        engine.release()


def query_rows(query, schema, given, known=None):
    """Return the rows of a query with the columns of ``schema``.

    ``given``: rows (mappings) of tables; ``known``: tables (Arrow) of what it reads beside them.
    """
    beside = known or {}
    read = names_in(query, WORMHOLE_TABLES)
    engine = _engine({**{name: _table(name, given.get(name, [])) for name in read}, **beside})
    try:
        return engine.table(query).select(schema.names).cast(schema).to_pylist()
    finally:
        engine.release()


def _engine(tables):
    engine = DuckDBEngine(tables.__getitem__)
    for function in functions(None):
        engine.define(function)
    for name in tables:
        engine.open(name)
    return engine


def _table(name, rows):
    schema = made.INPUTS.get(name) or WORMHOLE_TABLES[name].arrow
    fields = pa.schema([field.with_nullable(True) for field in schema])
    return pa.Table.from_pylist(
        [{field.name: row.get(field.name) for field in fields} for row in rows], fields
    )
