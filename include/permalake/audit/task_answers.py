"""Questions about large tables, answered in Spark's tasks: a task each, by DuckDB over the files of the days.

Spark's own plans for the same queries took four times the processor time. A task reads only the columns that
it needs; what does not fit its memory goes to the disk of its machine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
import pyarrow.dataset as ds

from permalake.audit.configuration import Configuration
from permalake.audit.laws import SHARED
from permalake.audit.outcomes import Outcome, Outcomes
from permalake.audit.questions import AuditQuestion, answer
from permalake.audit.scope import Scope
from permalake.engine.duckdb_engine import DuckDBEngine
from permalake.engine.local_files import sendable
from permalake.engine.protocol import PREVIOUS
from permalake.spark.sizes import TASK_MEMORY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ANSWER = pa.schema([pa.field("name", pa.string()), pa.field("outcomes", pa.string())])
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
    """

    spark: Callable[[], SparkSession]
    rows: Callable[[str], ds.Dataset]
    previous: Callable[[str], list[ds.Dataset]]
    days: Days | None = None

    def answers(self, questions: Sequence[AuditQuestion], scope: Scope) -> dict[str, Outcomes]:
        """Return the outcomes of each question, by its name; those with most rows begin first."""
        read = {one.name: scope.reached(*one.queries) for one in questions}
        ordered = sorted(
            questions, key=lambda one: -sum(scope.rows.get(table, 0) for table in read[one.name])
        )
        work = _Answering(ordered, self._known(set().union(*read.values()), scope), scope.configuration)
        numbers = self.spark().range(0, len(ordered), 1, len(ordered))
        found = numbers.mapInArrow(work, "name string, outcomes string").collect()
        return {
            row["name"]: {name: Outcome(**one) for name, one in json.loads(row["outcomes"]).items()}
            for row in found
        }

    def narrowed(self, start: date, end: date) -> TaskAnswers:
        """Return the same for ``start`` to ``end`` only, both inclusive."""
        return replace(self, days=(start, end))

    def _known(self, names: set[str], scope: Scope) -> _Known:
        tables = {name.removeprefix(PREVIOUS) for name in names} & set(scope.tables)
        before = {name.removeprefix(PREVIOUS) for name in names if name.startswith(PREVIOUS)} & tables
        shared = {name: SHARED[name] for name in names if name in SHARED}
        return _Known(
            {name: sendable(self.rows(name)) for name in tables},
            {name: [sendable(part) for part in self.previous(name)] for name in before},
            frozenset(name for name in tables if scope.is_small(name)),
            {name: query for name, query in shared.items() if isinstance(query, str)},
            {name: rows(scope.configuration) for name, rows in shared.items() if not isinstance(rows, str)},
            self.days,
        )


@dataclass(frozen=True)
class _Known:
    """What tasks are told: files by table, and what laws share, worked out where it needs this machine."""

    tables: Mapping[str, Rows]
    before: Mapping[str, list[Rows]]
    small: frozenset[str]
    queries: Mapping[str, str]
    given: Mapping[str, pa.Table]
    days: Days | None

    def scope(self, configuration: Configuration) -> Scope:
        """Return the scope of a question, for this process."""
        SHARED.update(self.queries)
        SHARED.update({name: partial(_given, rows) for name, rows in self.given.items()})
        engine = DuckDBEngine(
            self.tables.__getitem__, self._previous, memory=TASK_MEMORY, days=self.days, threads=1
        )
        is_small = self.small.__contains__
        return Scope(frozenset(self.tables), engine, configuration=configuration, is_small=is_small)

    def _previous(self, name: str) -> pa.Table:
        parts = [part if isinstance(part, pa.Table) else part.to_table() for part in self.before[name]]
        return pa.concat_tables([self.tables[name].schema.empty_table(), *parts], promote_options="default")


def _given(rows: pa.Table, _: Configuration) -> pa.Table:
    return rows


@dataclass(frozen=True)
class _Answering:
    """What a task does with the numbers of questions."""

    questions: Sequence[AuditQuestion]
    known: _Known
    configuration: Configuration

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in (number for batch in batches for number in batch.column(0).to_pylist()):
            question = self.questions[number]
            scope = self.known.scope(self.configuration)
            try:
                outcomes = {name: asdict(one) for name, one in answer(question, scope).items()}
            finally:
                scope.release()
            yield pa.RecordBatch.from_pydict(
                {"name": [question.name], "outcomes": [json.dumps(outcomes)]}, _ANSWER
            )
