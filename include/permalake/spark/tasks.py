"""Work of this program in Spark's tasks: what a task returns is small, what is large it leaves in files.

On a cluster a task has one core and :data:`~permalake.spark.sizes.TASK_MEMORY`. On a local master the tasks
of a call share this machine: all its cores, and as much memory as the driver has.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from permalake.errors import PermalakeError
from permalake.spark.sizes import TASK_MEMORY
from permalake.spark.submit import driver_memory, is_local, mebibytes

T = TypeVar("T")
S = TypeVar("S")
_RESULT = "number int, result binary"
_SCHEMA = pa.schema([("number", pa.int32()), ("result", pa.binary())])


@dataclass(frozen=True, slots=True)
class TaskShare:
    """DuckDB's share of a task: ``memory`` as ``512m``, and so many ``threads``."""

    memory: str
    threads: int

    @classmethod
    def of(cls, spark: SparkSession, tasks: int) -> TaskShare:
        """Return the share of each of some tasks that run at once."""
        if not is_local():
            return cls(TASK_MEMORY, 1)
        cores = spark.sparkContext.defaultParallelism
        at_once = min(tasks, cores)
        return cls(f"{mebibytes(driver_memory()) // at_once}m", cores // at_once)


def in_task(spark: SparkSession, work: Callable[[TaskShare], T]) -> T:
    """Return what ``work`` returns in a task.

    Raises:
        PermalakeError: as ``work`` raises it.
    """
    [result] = in_tasks(spark, lambda _, share: work(share), [None])
    return result


def in_tasks(spark: SparkSession, work: Callable[[S, TaskShare], T], subjects: Sequence[S]) -> list[T]:
    """Return what ``work`` returns for each subject, in a task of its own; in the order of the subjects.

    Work, subjects and results are pickled.

    Raises:
        PermalakeError: as ``work`` raises it.
    """

    def tasks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in (number for batch in batches for number in batch.column(0).to_pylist()):
            result: T | PermalakeError
            try:
                result = work(subjects[number], share)
            except PermalakeError as error:
                result = error
            columns = [pa.array([number], pa.int32()), pa.array([pickle.dumps(result)], pa.binary())]
            yield pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)

    if not subjects:
        return []
    share = TaskShare.of(spark, len(subjects))
    numbers = spark.range(0, len(subjects), 1, len(subjects))
    rows = sorted(numbers.mapInArrow(tasks, _RESULT).collect())
    results = [pickle.loads(row["result"]) for row in rows]  # noqa: S301 - of our own tasks
    for result in results:
        if isinstance(result, PermalakeError):
            raise result
    return results
