"""Questions of an audit, answered in Spark's tasks by DuckDB over the files of the days.

Spark's own plans for the same queries took four times the processor time. A task reads only the columns that
it needs; what does not fit its memory goes to the disk of its machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
import pyarrow.dataset as ds

from permalake.audit.configuration import Configuration
from permalake.audit.laws import SHARED
from permalake.audit.outcomes import Outcomes
from permalake.audit.questions import AuditQuestion, answer
from permalake.audit.scope import Scope
from permalake.engine.duckdb_engine import DuckDBEngine
from permalake.engine.local_files import sendable
from permalake.engine.rows import PREVIOUS
from permalake.spark.submit import is_local
from permalake.spark.tasks import TaskShare, in_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Days = tuple[date, date]
Rows: TypeAlias = pa.Table | ds.Dataset


@dataclass(frozen=True)
class TaskAnswers:
    """Answers of tasks about the rows of some days.

    Attributes:
        spark: Gives the session when it is first needed.
        rows: Returns the audited rows of a table.
        previous: Returns those of the latest day before, in parts.
        days: First and last day, where not all are asked about.
        reach: How many days more at either end belong to a table then; 0 where it is not named.
    """

    spark: Callable[[], SparkSession]
    rows: Callable[[str], ds.Dataset]
    previous: Callable[[str], list[ds.Dataset]]
    days: Days | None = None
    reach: Mapping[str, int] = field(default_factory=dict)

    def answers(self, questions: Sequence[AuditQuestion], scope: Scope) -> dict[str, Outcomes]:
        """Return the outcomes of each question, by its name."""
        read = {question.name: scope.reached(*question.queries) for question in questions}
        weights = {name: sum(scope.rows.get(table, 0) for table in tables) for name, tables in read.items()}
        given = self._given(set().union(*read.values()), scope)
        configuration = scope.configuration

        def work(share: Sequence[AuditQuestion], limits: TaskShare) -> dict[str, Outcomes]:
            here = given.scope(configuration, limits)
            try:
                return {question.name: answer(question, here) for question in share}
            finally:
                here.release()

        spark = self.spark()
        # On one machine a second task would open the same tables once more.
        tasks = 1 if is_local() else spark.sparkContext.defaultParallelism
        answered: dict[str, Outcomes] = {}
        for outcomes in in_tasks(spark, work, shares(questions, weights, tasks)):
            answered |= outcomes
        return answered

    def narrowed(self, start: date, end: date) -> TaskAnswers:
        """Return the same for ``start`` to ``end`` only, both inclusive."""
        return replace(self, days=(start, end))

    def _given(self, names: set[str], scope: Scope) -> _Given:
        tables = {name.removeprefix(PREVIOUS) for name in names} & set(scope.tables)
        before = {name.removeprefix(PREVIOUS) for name in names if name.startswith(PREVIOUS)} & tables
        shared = {name: SHARED[name] for name in names if name in SHARED}
        return _Given(
            {name: sendable(self.rows(name)) for name in tables},
            {name: [sendable(part) for part in self.previous(name)] for name in before},
            frozenset(name for name in tables if scope.is_small(name)),
            {name: query for name, query in shared.items() if isinstance(query, str)},
            {name: rows(scope.configuration) for name, rows in shared.items() if not isinstance(rows, str)},
            self.days,
            self.reach,
        )


def shares(
    questions: Sequence[AuditQuestion], weights: Mapping[str, int], most: int
) -> list[list[AuditQuestion]]:
    """Return questions in at most so many shares of about the same weight; each begins with its heaviest."""
    dealt: list[list[AuditQuestion]] = [[] for _ in range(min(most, len(questions)))]
    loads = [0] * len(dealt)
    for question in sorted(questions, key=lambda question: -weights[question.name]):
        lightest = loads.index(min(loads))
        dealt[lightest].append(question)
        loads[lightest] += weights[question.name] + 1
    return dealt


@dataclass(frozen=True)
class _Given:
    """The input of tasks: files by table, and what laws share, computed here where it must be."""

    tables: Mapping[str, Rows]
    before: Mapping[str, list[Rows]]
    small: frozenset[str]
    queries: Mapping[str, str]
    shared: Mapping[str, pa.Table]
    days: Days | None
    reach: Mapping[str, int]

    def scope(self, configuration: Configuration, limits: TaskShare) -> Scope:
        """Return the scope of questions, for this process; small tables are read once for all of them."""
        SHARED.update(self.queries)
        SHARED.update({name: partial(_rows, rows) for name, rows in self.shared.items()})
        engine = DuckDBEngine(
            self._table,
            self._previous,
            memory=limits.memory,
            days=self.days,
            threads=limits.threads,
            reach=self.reach,
        )
        is_small = self.small.__contains__
        return Scope(frozenset(self.tables), engine, configuration=configuration, is_small=is_small)

    def _table(self, name: str) -> Rows:
        rows = self.tables[name]
        return rows.to_table() if name in self.small and not isinstance(rows, pa.Table) else rows

    def _previous(self, name: str) -> pa.Table:
        parts = [part if isinstance(part, pa.Table) else part.to_table() for part in self.before[name]]
        return pa.concat_tables([self.tables[name].schema.empty_table(), *parts], promote_options="default")


def _rows(rows: pa.Table, _: Configuration) -> pa.Table:
    return rows
