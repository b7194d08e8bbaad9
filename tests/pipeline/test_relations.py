"""Queries in one process, over rows in memory."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from permalake.pipeline.relations import LocalQueries
from permalake.spark.tasks import TaskShare


def test_a_connection_forgets_what_earlier_queries_read() -> None:
    local = LocalQueries(TaskShare("64m", 1))
    query = {
        "twice": "SELECT value * 2 AS value FROM numbers",
        "sums": "SELECT sum(value) AS value FROM twice",
    }
    schema = pa.schema([("value", pa.int64())])
    for numbers, expected in (([1, 2], 6), ([5], 10)):
        rows = local.results(query, {"sums": schema}, {"numbers": pa.table({"value": numbers})})
        assert rows["sums"].to_pylist() == [{"value": expected}]
    with pytest.raises(duckdb.CatalogException):
        local.results({"sums": "SELECT value FROM numbers"}, {"sums": schema}, {})
    with pytest.raises(duckdb.CatalogException):
        local.results({"sums": "SELECT value FROM twice"}, {"sums": schema}, {})
    local.close()
