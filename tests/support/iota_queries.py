"""A day's analytics and carried tables, over tables without a lake."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
from pyspark.sql import functions as F

from permalake.engine.duckdb_engine import DuckDBEngine
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
    """The rows of a query over frames, as a frame."""
    engine = DuckDBEngine(lambda name: frames[name].toArrow())
    try:
        for name in frames:
            engine.open(name)
        return spark.createDataFrame(engine.table(query))
    finally:
        engine.release()


def analysed(spark, tables, written, v_byte_cost=None):
    """The analytics as frames; ``tables`` are frames by name."""
    read = {name: frame.toArrow() for name, frame in tables.items()}
    made = analytics(read, written, v_byte_cost)
    return {name: shaped(name, spark.createDataFrame(rows)) for name, rows in made.items()}


def analytics(tables, written, v_byte_cost=None):
    """The analytics as Arrow tables; ``tables`` are Arrow tables by name."""
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
    """What is published, out of frames by name, and queries over it.

    ``own`` gives the rows of the days to carry, ``history`` those of tables before them.
    """

    def __init__(self, own, history):
        self._own, self._history = own, history
        self.days = spans([row.asDict() for row in own("date_cache").collect()])
        self._opened = {}
        self.engine = DuckDBEngine(lambda name: self._opened[name].toArrow())

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

    def open(self, name, table, start, end) -> None:
        self._opened[name] = self._between(table, start, end)
        self.engine.open(name)


def carried_rows(own, history, rules):
    """The carried tables of days as Arrow tables."""
    published = PublishedFrames(own, history)
    try:
        given = published_state(published, published.days)
        made = carried_tables(published.engine, given, rules)
        return {name: _made(published.engine, IOTA_TABLES[name], rows) for name, rows in made.items()}
    finally:
        published.engine.release()


def _made(engine, contract, made):
    if isinstance(made, pa.Table):
        return made
    engine.keep(contract.name, cast(made, contract))
    return pa.Table.from_batches(engine.batches(f"SELECT * FROM {contract.name}")).cast(contract.arrow)
