"""Laws across tables, as double-entry bookkeeping, in SQL.

Most laws state that two ways of counting agree, per day and place (a milestone, a transaction, a row key).
Each side returns entries, and a law is violated where the sums of its sides differ. A law of another form
returns its violations. Sides are text, which the helpers below compose; the head of
:mod:`permalake.engine.duckdb_engine` says what it may call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from permalake.audit.suite import CRITICAL, WARNING, Severity
from permalake.contracts.rows import Row
from permalake.engine.rows import VIOLATIONS, Check

if TYPE_CHECKING:
    from permalake.audit.configuration import Configuration

VALUE_TYPE = "decimal(38,8)"
Kind = Literal["balance", "covered", "violations"]
Given = Callable[["Configuration"], "pa.Table"]

SHARED: dict[str, str | Given] = {}
"""Rows by name that several laws read: a query, or a table that follows from the configuration."""


@dataclass(frozen=True)
class Law:
    """A statement across tables.

    Attributes:
        name: Unique within a domain.
        table: Table that violations are reported under.
        text: What is expected, in one sentence.
        kind: How ``sides`` are compared; see :func:`balance`, :func:`covered` and :func:`violations`.
        sides: Two queries of :func:`entries`, or one of violations.
        severity: Severity of a violation.
        warns_on: Protocols on which a violation is a warning whatever the severity.
        check: For a law that SQL cannot state: finds the violations in the rows of the query.
    """

    name: str
    table: str
    text: str
    kind: Kind
    sides: tuple[str, ...] = field(repr=False)
    severity: Severity = CRITICAL
    warns_on: tuple[str, ...] = ()
    check: Check | None = field(default=None, repr=False)

    def severity_on(self, protocol: str | None) -> Severity:
        """Return the severity of a violation on a network of ``protocol``."""
        return WARNING if protocol in self.warns_on else self.severity


def balance(
    name: str, table: str, text: str, *, expected: str, actual: str, severity: Severity = CRITICAL
) -> Law:
    """Return a law: the values of both sides add up to the same at every date and place."""
    return Law(name, table, text, "balance", (expected, actual), severity)


def covered(
    name: str, table: str, text: str, *, things: str, allowed: str, severity: Severity = CRITICAL
) -> Law:
    """Return a law: every date and place of ``things`` is among those that are ``allowed``."""
    return Law(name, table, text, "covered", (things, allowed), severity)


def violations(
    name: str,
    table: str,
    text: str,
    find: str,
    *,
    check: Check | None = None,
    severity: Severity = CRITICAL,
    warns_on: tuple[str, ...] = (),
) -> Law:
    """Return a law whose violations ``find`` returns: (date, place, expected, found).

    With ``check``, ``find`` returns the rows in which ``check`` finds them.
    """
    return Law(name, table, text, "violations", (find,), severity, warns_on, check)


def each_row(wrong: Callable[[Row], Iterable[tuple[object, ...]]]) -> Check:
    """Return the check of rows one by one: ``wrong`` gives the (date, place, expected, found) of a row."""

    def check(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = [violation for row in batch.to_pylist() for violation in wrong(row)]
            columns = [pa.array(column) for column in zip(*rows, strict=True)]
            if rows:
                yield pa.RecordBatch.from_arrays(columns, names=VIOLATIONS.names)

    return check


def shared(name: str, rows: str | Given) -> str:
    """Return ``name`` as that of rows which laws select from as from a table."""
    SHARED[name] = rows
    return name


def entries(rows: str, place: str, value: str = "1") -> str:
    """Return entries of a side: (date, place, value). ``place`` and ``value`` are SQL; rows count as 1."""
    return (
        f"SELECT date, CAST({place} AS STRING) AS place, CAST({value} AS {VALUE_TYPE}) AS value "
        f"FROM {_source(rows)}"
    )


def side(table: str, place: str, value: str = "1", where: str = "true") -> str:
    """Return a side with an entry per row of ``table`` that meets ``where``."""
    return f"{entries(table, place, value)} WHERE {where}"


def by(rows: str, place: str, value: str = "1") -> str:
    """Return a side with an entry per row of ``rows`` that has a place."""
    return f"SELECT date, place, value FROM ({entries(rows, place, value)}) WHERE place IS NOT NULL"


def unpivoted(rows: str, place: str, values: dict[str, str]) -> str:
    """Return an entry per row and value that is not null; ``place`` may read ``name``, that of the value."""
    names = ", ".join(f"('{name}')" for name in values)
    cases = " ".join(f"WHEN '{name}' THEN CAST({value} AS {VALUE_TYPE})" for name, value in values.items())
    return (
        f"SELECT date, place, value FROM (SELECT date, {place} AS place, CASE name {cases} END AS value "
        f"FROM {_source(rows)} CROSS JOIN (VALUES {names}) AS named(name)) WHERE value IS NOT NULL"
    )


def per_row(rows: str, /, **values: str) -> str:
    """Return an entry per row and value that is not null; the name of the value is the place."""
    return unpivoted(rows, "name", values)


def per_day(rows: str, /, **values: str) -> str:
    """Return an entry per day and aggregate; the name of the aggregate is the place."""
    aggregates = ", ".join(f"{value} AS {place}" for place, value in values.items())
    of_days = f"SELECT date, {aggregates} FROM {_source(rows)} GROUP BY date"
    return per_row(of_days, **{place: place for place in values})


def union(queries: Iterable[str]) -> str:
    """Return all rows of queries with the same columns."""
    return " UNION ALL ".join(queries)


def violations_of(law: Law) -> str:
    """Return the query of a law's violations: (date, place, expected, found)."""
    if law.kind == "violations":
        texts = (f"CAST({name} AS STRING) AS {name}" for name in ("place", "expected", "found"))
        source = f"checked_{law.name}" if law.check else f"({law.sides[0]})"
        return f"SELECT date, {', '.join(texts)} FROM {source}"
    first, second = law.sides
    sums = (
        "SELECT date, place, sum(expected) AS expected, sum(found) AS found FROM ("
        f"SELECT date, place, value AS expected, CAST(0 AS {VALUE_TYPE}) AS found FROM ({first}) UNION ALL "
        f"SELECT date, place, CAST(0 AS {VALUE_TYPE}), value FROM ({second})) GROUP BY date, place"
    )
    if law.kind == "covered":
        return (
            f"SELECT date, place, 'known' AS expected, 'nothing' AS found FROM ({sums}) "
            "WHERE expected > 0 AND found = 0"
        )
    return f"SELECT date, place, expected, found FROM ({sums}) WHERE expected IS DISTINCT FROM found"


def _source(rows: str) -> str:
    return rows if rows.isidentifier() else f"({rows})"
