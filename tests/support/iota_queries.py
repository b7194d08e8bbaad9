"""A day's analytics by either engine, over tables without a lake."""

from __future__ import annotations

import pyarrow as pa

from permalake.audit.duckdb_engine import DuckDBEngine
from permalake.audit.spark_engine import SparkEngine
from permalake.iota.contracts import IOTA_TABLES
from permalake.iota.tables.day_sums import SUMS
from permalake.iota.tables.day_tables import analytics_tables
from permalake.pipeline.day_queries import cast, levels, names_in, ordered


def shaped(name, frame):
    """The frame in its contract's columns and types, as the lake stages it."""
    contract = IOTA_TABLES[name]
    columns = (frame[c.name].cast(contract.spark[c.name].dataType.simpleString()) for c in contract.columns)
    return frame.select(*columns).cache()


def queried(spark, query, **frames):
    """A query over frames, by Spark."""
    engine = SparkEngine(lambda: spark, lambda _, name: frames[name])
    for name in frames:
        engine.open(name)
    return engine.frame(query)


def by_spark(spark, tables, written, v_byte_cost=None):
    """The analytics as frames; ``tables`` are frames by name."""
    made = {}

    def rows(session, name):
        return written.frame(session, name) if name in SUMS else (tables | made)[name]

    queries = analytics_tables(v_byte_cost)
    engine = SparkEngine(lambda: spark, rows)
    for group in levels(queries):
        for name in group:
            for read in names_in(queries[name], {*IOTA_TABLES, *SUMS}):
                engine.open(read)
            made[name] = shaped(name, engine.frame(queries[name]))
    return made


def by_duckdb(tables, written, v_byte_cost=None):
    """The same as Arrow tables; ``tables`` are Arrow tables by name."""
    queries = analytics_tables(v_byte_cost)
    engine = DuckDBEngine(lambda name: written.dataset(name) if name in SUMS else tables[name])
    for read in names_in(" ".join(queries.values()), {*IOTA_TABLES, *SUMS}) - set(queries):
        engine.open(read)
    made = {}
    for name in (one for group in levels(queries) for one in group):
        engine.keep(name, cast(queries[name], IOTA_TABLES[name]))
        batches = list(engine.batches(ordered(name, IOTA_TABLES[name])))
        schema = pa.schema([field.with_nullable(True) for field in IOTA_TABLES[name].arrow])
        made[name] = pa.Table.from_batches([batch.cast(schema) for batch in batches], schema)
    engine.release()
    return made
