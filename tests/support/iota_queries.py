"""A day's analytics and carried tables by either engine, over tables without a lake."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
from pyspark.sql import functions as F

from permalake.engine.duckdb_engine import DuckDBEngine
from permalake.engine.spark_engine import SparkEngine
from permalake.iota.contracts import IOTA_TABLES
from permalake.iota.tables.carried_tables import carried_tables, published_state, spans
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


class PublishedFrames:
    """What is published, out of frames by name, and queries over it by the engine of that name.

    ``own`` gives the rows of the days to carry, ``history`` those of tables before them.
    """

    def __init__(self, spark, own, history, engine):
        self._own, self._history = own, history
        self.days = spans([row.asDict() for row in own("date_cache").collect()])
        self._opened = {}
        self.engine = (
            CarryingSpark(spark, self._opened)
            if engine == "spark"
            else DuckDBEngine(lambda name: self._opened[name].toArrow())
        )

    def _between(self, table, start, end):
        first = self.days[0][0]
        rows = self._own if start >= first else self._history
        assert start >= first or end < first
        return rows(table).where(F.col("date").between(F.lit(start), F.lit(end)))

    def read(self, table, start, end):
        return [row.asDict() for row in self._between(table, start, end).collect()]

    def latest_before(self, table):
        until = self.days[0][0] - timedelta(days=1)
        return self._history(table).where(F.col("date") <= F.lit(until)).agg(F.max("date")).first()[0]

    def open(self, name, table, start, end):
        self._opened[name] = self._between(table, start, end)
        self.engine.open(name)


class CarryingSpark(SparkEngine):
    """Spark's engine, which can take rows in batches too."""

    def __init__(self, spark, opened):
        super().__init__(lambda: spark, lambda _, name: opened[name])

    def take(self, name, batches, schema):
        self.put(name, pa.Table.from_batches(batches, schema))


def carried_by(engine, spark, own, history, rules):
    """The carried tables of days as Arrow tables, by ``duckdb`` or ``spark``."""
    published = PublishedFrames(spark, own, history, engine)
    try:
        given = published_state(published, published.days)
        found = carried_tables(published.engine, given, rules)
        return {name: _made(published.engine, IOTA_TABLES[name], made) for name, made in found.items()}
    finally:
        published.engine.release()


def _made(engine, contract, made):
    if isinstance(made, pa.Table):
        return made
    if isinstance(engine, SparkEngine):
        return shaped(contract.name, engine.frame(made)).toArrow().cast(contract.arrow)
    engine.keep(contract.name, cast(made, contract))
    return pa.Table.from_batches(engine.batches(f"SELECT * FROM {contract.name}")).cast(contract.arrow)
