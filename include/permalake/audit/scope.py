"""What an audit reads: the rows of its days, and the configuration of their network."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from threading import RLock
from typing import Any, Protocol

import pyarrow as pa

from permalake.audit.configuration import Configuration
from permalake.audit.laws import SHARED, Check, names_in

PREVIOUS = "previous_"
"""Prefix of a table: its rows of the latest day before the audited ones."""
CONFIGURATION = "configuration"
"""Name of the configuration's numbers, as a table with one row."""
VIOLATIONS = pa.schema(
    {"date": pa.date32(), "place": pa.string(), "expected": pa.string(), "found": pa.string()}
)
"""What the check of a law finds."""


class Engine(Protocol):
    """What executes queries of an audit: Spark, or DuckDB in memory."""

    def open(self, name: str) -> None:
        """Make the audited rows of a table known by its name, or with ``previous_`` those before."""

    def put(self, name: str, rows: pa.Table) -> None:
        """Make rows known by name."""

    def keep(self, name: str, query: str, check: Check | None = None) -> None:
        """Make the rows of a query known by name, or what ``check`` finds wrong in them; computed once."""

    def types(self, name: str) -> dict[str, str]:
        """Return the columns of a table with the types that they have, by Spark's names."""

    def rows(self, query: str) -> list[dict[str, Any]]:
        """Return the rows of a query over known names."""

    def narrowed(self, start: date, end: date) -> Engine:
        """Return an engine for ``start`` to ``end`` only, both inclusive."""

    def release(self) -> None:
        """Drop what was made known."""


def _all(name: str) -> bool:  # noqa: ARG001
    return True


@dataclass(frozen=True)
class Scope:
    """The audited days of some tables.

    Attributes:
        tables: Names of the tables.
        memory: DuckDB, in this process: executes what reads small tables only, or everything.
        spark: Executes what reads a large table; None where DuckDB does.
        is_small: Whether a table is small.
        rows: Number of rows by table, where known. Empty tables are not judged row by row.
    """

    tables: Collection[str]
    memory: Engine | None
    spark: Engine | None = None
    configuration: Configuration = field(default_factory=Configuration)
    is_small: Callable[[str], bool] = _all
    rows: Mapping[str, int] = field(default_factory=dict)
    _known: dict[int, set[str]] = field(default_factory=dict, repr=False, compare=False)
    _lock: Any = field(default_factory=RLock, repr=False, compare=False)

    def engine(self, *queries: str) -> Engine:
        """Return the engine of some queries, with all that they read made known to it.

        A table's name is a query too.
        """
        names: set[str] = set()
        for query in queries:
            names |= {query} if query.isidentifier() else names_in(query)
        engine = self._chosen(names)
        with self._lock:
            for name in sorted(names):
                self._make_known(engine, name)
        return engine

    def reads_large(self, *queries: str) -> bool:
        """Return whether some queries read a table that is not small; nothing is read."""
        return self._is_large({name for query in queries for name in names_in(query)})

    def is_empty(self, name: str) -> bool:
        """Return whether the table is known to have no rows."""
        return self.rows.get(name) == 0

    def narrowed(self, start: date, end: date) -> Scope:
        """Return the same scope for ``start`` to ``end`` only, both inclusive."""
        memory, spark = (one.narrowed(start, end) if one else None for one in (self.memory, self.spark))
        return replace(self, memory=memory, spark=spark, rows={}, _known={}, _lock=RLock())

    def release(self) -> None:
        """Drop what the engines keep."""
        for engine in filter(None, (self.memory, self.spark)):
            engine.release()
        self._known.clear()

    def _chosen(self, names: Collection[str]) -> Engine:
        engine = self.spark if self.spark and self._is_large(names) else self.memory
        if engine is None:
            raise ValueError("an audit needs an engine")
        return engine

    def _is_large(self, names: Collection[str]) -> bool:
        read = {name.removeprefix(PREVIOUS) for name in self._reached(names)} & set(self.tables)
        return self.memory is None or not all(map(self.is_small, read))

    def _reached(self, names: Collection[str]) -> set[str]:
        """Return names and those that shared queries among them read."""
        reached = set(names)
        for name in names:
            if isinstance(query := SHARED.get(name), str):
                reached |= self._reached(names_in(query))
        return reached

    def _make_known(self, engine: Engine, name: str) -> None:
        known = self._known.setdefault(id(engine), set())
        if name in known:
            return
        rows = SHARED.get(name)
        if name.removeprefix(PREVIOUS) in self.tables:
            engine.open(name)
        elif isinstance(rows, str):
            for one in sorted(names_in(rows)):
                self._make_known(engine, one)
            engine.keep(name, rows)
        elif rows is not None:
            engine.put(name, rows(self.configuration))
        elif name == CONFIGURATION:
            engine.put(name, self.configuration.row())
        known.add(name)
