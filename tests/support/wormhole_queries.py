"""Enriched tables of Wormhole days by either engine, over rows without a lake."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pytest

from permalake.engine.duckdb_engine import DuckDBEngine
from permalake.engine.spark_engine import SparkEngine
from permalake.pipeline import query_frames
from permalake.pipeline.day_queries import DayQueries, KnownFrames, cast, levels, names_in
from permalake.pipeline.query_frames import DayTables
from permalake.wormhole.contracts import WORMHOLE_TABLES
from permalake.wormhole.reference import load_reference
from permalake.wormhole.tables import enriched_tables as made
from permalake.wormhole.tables.amount_queries import functions

ENGINES = ("duckdb", "spark")


def enriched_rows(engine, spark, given, *names):
    """The rows of the tables ``names`` as their contracts have them.

    ``given``: rows (mappings) by table or name in ``KNOWN``; columns that they lack are null.
    """
    queries = made.enriched_tables(load_reference().chains)
    wanted = {name: queries[name] for name in names}
    read = names_in(" ".join(wanted.values()), {*WORMHOLE_TABLES, *made.KNOWN}) - set(wanted)
    tables = {name: _table(name, given.get(name, [])) for name in read}
    if engine == "duckdb":
        return _by_duckdb(tables, wanted)
    return _by_spark(spark, tables, wanted)


def found(engine, spark, query, schema, given, known=None):
    """Return the rows that a query finds by either engine, as the jobs ask for them.

    ``given``: rows (mappings) of tables; ``known``: tables (Arrow) of what it reads beside them.
    """
    rows = partial(_given, given)
    tables = DayTables(spark, rows, lambda name: spark.createDataFrame(rows(name)))
    beside = KnownFrames({name: spark.createDataFrame(table) for name, table in (known or {}).items()})
    queries = DayQueries({"found": query}, WORMHOLE_TABLES, beside, functions(None))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(query_frames, "is_local", lambda: engine == "duckdb")
        return query_frames.query_frames(tables, queries, {"found": schema})["found"].toArrow().to_pylist()


def _given(given, name):
    return _table(name, given.get(name, []))


def _table(name, rows):
    schema = made.KNOWN.get(name) or WORMHOLE_TABLES[name].arrow
    fields = pa.schema([field.with_nullable(True) for field in schema])
    return pa.Table.from_pylist(
        [{field.name: row.get(field.name) for field in fields} for row in rows], fields
    )


def _by_duckdb(tables, queries):
    engine = DuckDBEngine(tables.__getitem__)
    try:
        _know(engine, tables)
        for name in (one for group in levels(queries) for one in group):
            engine.keep(name, cast(queries[name], WORMHOLE_TABLES[name]))
        return {name: engine.rows(f"SELECT * FROM {name}") for name in queries}
    finally:
        engine.release()


def _by_spark(spark, tables, queries):
    frames = {name: spark.createDataFrame(rows) for name, rows in tables.items()}
    engine = SparkEngine(lambda: spark, lambda _, name: frames[name])
    try:
        _know(engine, tables)
        for name in (one for group in levels(queries) for one in group):
            fields = WORMHOLE_TABLES[name].spark.fields
            rows = engine.frame(queries[name])
            frames[name] = rows.select(
                *(rows[one.name].cast(one.dataType) for one in fields)
            ).localCheckpoint()
            engine.open(name)
        return {name: frames[name].toArrow().to_pylist() for name in queries}
    finally:
        engine.release()


def _know(engine, tables):
    for function in functions(None):
        engine.define(function)
    for name in tables:
        engine.open(name)
