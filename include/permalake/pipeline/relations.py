"""Rows that queries read and give: Arrow tables, or files that are read as needed; and who runs the queries.

The same queries run in a Spark task, where a day's rows lie in files
(:class:`~permalake.pipeline.day_landing.DayLanding`), and in this process, where a live head's few rows are
in memory (:class:`LocalQueries`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from permalake.contracts.sql_functions import SqlFunction
from permalake.engine.duckdb_engine import DuckDBEngine
from permalake.engine.rows import Relation
from permalake.pipeline.day_queries import QueriesOverFiles, names_in
from permalake.spark.tasks import TaskShare

_BATCH = 5_000
S = TypeVar("S")


class QueryRunner(Protocol):
    """Whoever runs queries over relations."""

    def results(
        self, queries: Mapping[str, str], schemas: Mapping[str, pa.Schema], given: Mapping[str, Relation]
    ) -> Mapping[str, Relation]:
        """Return the rows of queries by name.

        Args:
            queries: Each may read what is ``given``, and the rows of queries before it.
            schemas: Columns and types of those whose rows are returned.
            given: Relations by the names under which queries read them.
        """
        ...

    def read(
        self, schema: pa.Schema, parts: Sequence[S], work: Callable[[S, TaskShare], Iterable[pa.RecordBatch]]
    ) -> Relation:
        """Return the rows that ``work``, which can be pickled, makes of each part."""
        ...


class LocalQueries:
    """Runs queries in this process, over rows that it can hold, with one connection and bounded memory.

    Args:
        share: What the connection may use.
        functions: What queries may call beside the engine's own.
    """

    def __init__(self, share: TaskShare, functions: Sequence[SqlFunction] = ()) -> None:
        self._share = share
        self._given: dict[str, Relation] = {}
        self._engine = DuckDBEngine(self._given.__getitem__, memory=share.memory, threads=share.threads)
        for function in functions:
            self._engine.define(function)

    def results(
        self, queries: Mapping[str, str], schemas: Mapping[str, pa.Schema], given: Mapping[str, Relation]
    ) -> Mapping[str, Relation]:
        """Return the rows of queries as tables."""
        rows: dict[str, list[pa.Table]] = {name: [schema.empty_table()] for name, schema in schemas.items()}
        self._given.update(over(queries, given).files)
        try:
            for name in sorted(self._given):
                self._engine.open(name)
            for name, some in result_batches(self._engine, queries, schemas):
                rows[name].append(some)
        finally:
            self._engine.forget()
            self._given.clear()
        return {name: pa.concat_tables(some) for name, some in rows.items()}

    def read(
        self, schema: pa.Schema, parts: Sequence[S], work: Callable[[S, TaskShare], Iterable[pa.RecordBatch]]
    ) -> Relation:
        """Return what ``work`` makes of all parts as one table."""
        batches = (batch for part in parts for batch in work(part, self._share))
        return pa.concat_tables([schema.empty_table(), *(shaped(batch, schema) for batch in batches)])

    def close(self) -> None:
        """Close the connection."""
        self._engine.release()


def over(queries: Mapping[str, str], given: Mapping[str, Relation]) -> QueriesOverFiles:
    """Return queries with those of the relations that they read."""
    read = names_in(" ".join(queries.values()), given)
    return QueriesOverFiles(queries, {name: given[name] for name in read})


def result_batches(
    engine: DuckDBEngine, queries: Mapping[str, str], schemas: Mapping[str, pa.Schema]
) -> Iterator[tuple[str, pa.Table]]:
    """Yield the rows of queries, some at a time, with the name of the query that gives them."""
    kept = names_in(" ".join(queries.values()), queries)
    for name, query in queries.items():
        if name in kept:
            engine.keep(name, query)
    for name, schema in schemas.items():
        query = f"SELECT * FROM {name}" if name in kept else queries[name]
        for batch in engine.batches(query):
            yield name, shaped(batch, schema)


def shaped(batch: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    """Return rows with the columns and types of a schema."""
    return pa.Table.from_batches([batch]).select(schema.names).cast(schema)


def count(relation: Relation) -> int:
    """Return the number of rows."""
    return relation.num_rows if isinstance(relation, pa.Table) else int(relation.count_rows())


def dates_of(relation: Relation) -> set[date]:
    """Return the days of the rows."""
    batches = dataset(relation).to_batches(columns=["date"])
    return {day for batch in batches for day in pc.unique(batch["date"]).to_pylist() if day is not None}


def rows_where(relation: Relation, condition: pc.Expression | None = None) -> Iterator[dict[str, Any]]:
    """Yield rows in their order, of which few are held at a time."""
    for batch in dataset(relation).to_batches(
        filter=condition, batch_size=_BATCH, batch_readahead=1, fragment_readahead=1
    ):
        yield from batch.to_pylist()


def dataset(relation: Relation) -> ds.Dataset:
    """Return the rows as a dataset."""
    return ds.dataset(relation) if isinstance(relation, pa.Table) else relation


def table(relation: Relation) -> pa.Table:
    """Return the rows, all in memory."""
    return relation if isinstance(relation, pa.Table) else relation.to_table()
