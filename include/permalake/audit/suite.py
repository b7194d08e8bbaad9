"""Rules that the rows of one table must meet, and the basics that follow from its contract.

A rule is a SQL predicate over one row, read as SQL reads a CHECK constraint: a row fails where it is false,
not where it is null. What must not be null is said by a rule of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from permalake.contracts import Column, Table

Severity = Literal["critical", "warning"]
CRITICAL: Severity = "critical"
WARNING: Severity = "warning"


@dataclass(frozen=True, slots=True)
class Rule:
    """``predicate`` holds for every row. A failing ``warning`` is shown, but the day is published."""

    name: str
    predicate: str
    text: str
    severity: Severity = CRITICAL


@dataclass(frozen=True, slots=True)
class Suite:
    """What is expected of ``table`` beyond its contract."""

    table: str
    rules: tuple[Rule, ...]


def suite(table: str, *rules: Rule) -> Suite:
    """The suite of a table: its contract's basics and these rules."""
    names = [one.name for one in rules]
    if len(set(names)) != len(names):
        raise ValueError(f"{table}: two rules of one name")
    return Suite(table, rules)


def rule(name: str, predicate: str, text: str, severity: Severity = CRITICAL) -> Rule:
    """A rule; ``text`` says in one sentence what is expected."""
    return Rule(name, predicate, text, severity)


def basics(table: Table) -> list[Rule]:
    """Rules that follow from a contract: nulls, value sets, ranges, patterns."""
    rules = []
    for column in table.columns:
        if column.required:
            rules.append(
                Rule(f"{column.name}_present", f"{column.name} IS NOT NULL", f"{column.name} is never null.")
            )
        rules += _of_values(column)
    return rules


def _of_values(column: Column) -> list[Rule]:
    rules = []
    if column.values is not None:
        listed = ", ".join(_literal(value) for value in column.values)
        rules.append(
            Rule(f"{column.name}_known", f"{column.name} IN ({listed})", f"{column.name} is one of {listed}.")
        )
    for bound, sign, word in ((column.minimum, ">=", "least"), (column.maximum, "<=", "most")):
        if bound is not None:
            rules.append(
                Rule(
                    f"{column.name}_at_{word}_{bound}",
                    f"{column.name} {sign} {bound}",
                    f"{column.name} is at {word} {bound}.",
                )
            )
    if column.pattern is not None:
        rules.append(
            Rule(
                f"{column.name}_well_formed",
                f"{column.name} RLIKE {_literal(column.pattern)}",
                f"{column.name} matches {column.pattern}",
            )
        )
    return rules


def shown(table: Table, predicate: str) -> tuple[str, ...]:
    """Columns to show of a failing row: its key, and what the predicate reads."""
    words = set(re.findall(r"[a-z_][a-z0-9_]*", predicate))
    read = [name for name in table.names if name in words and name not in table.key]
    return (*(name for name in table.key if name != "date"), *read)


def _literal(value: int | str) -> str:
    # A raw literal: in a plain one a backslash of a pattern would be taken for an escape.
    return str(value) if isinstance(value, int) else f"r'{value}'"


def little_endian(column: str, start: int, size: int) -> str:
    """SQL for the unsigned integer of ``size`` bytes at ``start`` (from 1) of a binary column."""
    pairs = ", ".join(f"hex(substring({column}, {at}, 1))" for at in range(start + size - 1, start - 1, -1))
    return f"cast(conv(concat({pairs}), 16, 10) AS decimal(20,0))"
