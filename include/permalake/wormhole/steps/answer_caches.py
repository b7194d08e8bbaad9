"""What external services answered, as a step reads and adds to it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

from pyspark.sql import SparkSession

from permalake.contracts import Table
from permalake.lake import Attempt, CarryAttempt
from permalake.pipeline.side_rows import append_new
from permalake.wormhole.enrich.collector import AnswerCache


def answer_cache(
    spark: SparkSession,
    attempt: Attempt | CarryAttempt,
    table: Table,
    remark: Callable[[str, date | None], None],
) -> AnswerCache:
    """Return the access of an attempt to a table of answers; ``remark`` notes what nobody answered."""
    return AnswerCache(
        read=lambda first, last: attempt.staged.rows(table.name, first, last).scan(),
        add=lambda rows: append_new(attempt, rows, table, spark),
        remark=remark,
    )
