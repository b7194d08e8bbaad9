"""Laws across tables, as double-entry bookkeeping.

Most laws state that two ways of counting agree, per day and place (a milestone, a transaction, a row key).
Each side returns entries; one aggregation over the entries of all laws finds where sides differ, so thirty
laws cost little more than one. A law of another form returns its violations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import reduce
from typing import Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from permalake.audit.scope import Scope
from permalake.audit.suite import CRITICAL, WARNING, Severity

VALUE_TYPE = "decimal(38,8)"
Kind = Literal["balance", "covered", "violations"]
Frame = Callable[[Scope], DataFrame]
"""A side of a law, or its violations."""


@dataclass(frozen=True)
class Law:
    """A statement across tables.

    Attributes:
        name: Unique within a domain.
        table: Table that violations are reported under.
        text: What is expected, in one sentence.
        kind: How ``sides`` are compared; see :func:`balance`, :func:`covered` and :func:`violations`.
        sides: Two frames of :func:`entries`, or one of violations.
        severity: Severity of a violation.
        warns_on: Protocols on which a violation is a warning whatever the severity.
    """

    name: str
    table: str
    text: str
    kind: Kind
    sides: tuple[Frame, ...] = field(repr=False)
    severity: Severity = CRITICAL
    warns_on: tuple[str, ...] = ()

    def severity_on(self, protocol: str | None) -> Severity:
        """Return the severity of a violation on a network of ``protocol``."""
        return WARNING if protocol in self.warns_on else self.severity


def balance(
    name: str, table: str, text: str, *, expected: Frame, found: Frame, severity: Severity = CRITICAL
) -> Law:
    """Return a law: the values of both sides add up to the same at every date and place."""
    return Law(name, table, text, "balance", (expected, found), severity)


def covered(
    name: str, table: str, text: str, *, things: Frame, known: Frame, severity: Severity = CRITICAL
) -> Law:
    """Return a law: every date and place of ``things`` is among ``known``."""
    return Law(name, table, text, "covered", (things, known), severity)


def violations(
    name: str,
    table: str,
    text: str,
    find: Frame,
    *,
    severity: Severity = CRITICAL,
    warns_on: tuple[str, ...] = (),
) -> Law:
    """Return a law whose violations ``find`` returns: (date, place, expected, found)."""
    return Law(name, table, text, "violations", (find,), severity, warns_on)


def entries(frame: DataFrame, place: str, value: str = "1") -> DataFrame:
    """Return entries of a side: (date, place, value). ``place`` and ``value`` are SQL; rows count as 1."""
    return frame.selectExpr(
        "date", f"cast({place} AS string) AS place", f"cast({value} AS {VALUE_TYPE}) AS value"
    )


def side(table: str, place: str, value: str = "1", where: str = "true") -> Frame:
    """Return a side with an entry per row of ``table`` that meets ``where``."""
    return lambda scope: entries(scope(table).where(where), place, value)


def by(frame: Frame, place: str, value: str = "1") -> Frame:
    """Return a side with an entry per row of ``frame`` that has a place."""
    return lambda scope: entries(frame(scope), place, value).where("place IS NOT NULL")


def per_row(frame: DataFrame, **values: str) -> DataFrame:
    """Return an entry per row and value that is not null; the name of the value is the place."""
    pairs = ", ".join(f"'{place}', cast({value} AS {VALUE_TYPE})" for place, value in values.items())
    stacked = frame.selectExpr("date", f"stack({len(values)}, {pairs}) AS (place, value)")
    return stacked.where("value IS NOT NULL")


def per_day(frame: DataFrame, **values: str) -> DataFrame:
    """Return an entry per day and aggregate; the name of the aggregate is the place."""
    aggregates = (F.expr(value).alias(place) for place, value in values.items())
    return per_row(frame.groupBy("date").agg(*aggregates), **{place: place for place in values})


def union(frames: Iterable[DataFrame]) -> DataFrame:
    """Return all rows of frames with the same columns.

    Frames are joined in pairs: Spark analyses the whole plan again with each union.
    """
    parts = list(frames)
    while len(parts) > 1:
        parts = [reduce(DataFrame.unionByName, parts[at : at + 2]) for at in range(0, len(parts), 2)]
    return parts[0]
