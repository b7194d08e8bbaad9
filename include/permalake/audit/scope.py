"""The input of an audit: the rows of its days, and the configuration of their network."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from threading import RLock
from typing import Any, Protocol

from permalake.audit.configuration import Configuration
from permalake.audit.laws import SHARED
from permalake.contracts.sql_text import names_read
from permalake.engine.duckdb_engine import DuckDBEngine
from permalake.engine.rows import PREVIOUS

CONFIGURATION = "configuration"
"""Name of the configuration's numbers, as a table with one row."""


class Tasks(Protocol):
    """Answers questions elsewhere."""

    def answers(self, questions: Sequence[Any], scope: Scope) -> Mapping[str, Any]:
        """Return the outcomes of each question, by its name; see :mod:`permalake.audit.questions`."""

    def narrowed(self, start: date, end: date) -> Tasks:
        """Return the same for ``start`` to ``end`` only, both inclusive."""


def _all(name: str) -> bool:  # noqa: ARG001
    return True


@dataclass(frozen=True)
class Scope:
    """The audited days of some tables.

    Attributes:
        tables: Names of the tables.
        tables_engine: Knows the columns of tables, and executes queries where there are no ``tasks``.
        tasks: Answers questions elsewhere.
        is_small: Whether a table is small. Of large ones, hashes are compared first.
        rows: Number of rows by table, where known. Empty tables are not judged row by row.
    """

    tables: Collection[str]
    tables_engine: DuckDBEngine
    tasks: Tasks | None = None
    configuration: Configuration = field(default_factory=Configuration)
    is_small: Callable[[str], bool] = _all
    rows: Mapping[str, int] = field(default_factory=dict)
    _known: set[str] = field(default_factory=set, repr=False, compare=False)
    _lock: Any = field(default_factory=RLock, repr=False, compare=False)

    def engine(self, *queries: str) -> DuckDBEngine:
        """Return the engine, with all that some queries read made known to it.

        A table's name is a query too.
        """
        with self._lock:
            for name in sorted({name for query in queries for name in _named(query)}):
                self._make_known(name)
        return self.tables_engine

    def reads_large(self, *queries: str) -> bool:
        """Return whether some queries read a table that is not small; nothing is read."""
        read = {name.removeprefix(PREVIOUS) for name in self.reached(*queries)} & set(self.tables)
        return not all(map(self.is_small, read))

    def reached(self, *queries: str) -> set[str]:
        """Return what some queries read, and what shared queries among it read."""
        reached: set[str] = set()
        for query in queries:
            names = _named(query)
            reached |= names
            for name in names:
                if isinstance(rows := SHARED.get(name), str):
                    reached |= self.reached(rows)
        return reached

    def is_empty(self, name: str) -> bool:
        """Return whether the table is known to have no rows."""
        return self.rows.get(name) == 0

    def narrowed(self, start: date, end: date) -> Scope:
        """Return the same scope for ``start`` to ``end`` only, both inclusive."""
        tasks = self.tasks.narrowed(start, end) if self.tasks else None
        tables_engine = self.tables_engine.narrowed(start, end)
        return replace(self, tables_engine=tables_engine, tasks=tasks, rows={}, _known=set(), _lock=RLock())

    def release(self) -> None:
        """Drop what the engine keeps."""
        self.tables_engine.release()
        self._known.clear()

    def _make_known(self, name: str) -> None:
        if name in self._known:
            return
        rows = SHARED.get(name)
        if name.removeprefix(PREVIOUS) in self.tables:
            self.tables_engine.open(name)
        elif isinstance(rows, str):
            for shared_name in sorted(names_read(rows)):
                self._make_known(shared_name)
            self.tables_engine.keep(name, rows)
        elif rows is not None:
            self.tables_engine.put(name, rows(self.configuration))
        elif name == CONFIGURATION:
            self.tables_engine.put(name, self.configuration.row())
        self._known.add(name)


def _named(query: str) -> set[str]:
    return {query} if query.isidentifier() else names_read(query)
