"""Rules for the rows of one table: those that follow from its contract, and its suite.

A rule is a SQL predicate over one row with the semantics of a CHECK constraint: a row fails where the
predicate is false, not where it is null. A column that must not be null has a rule for that. The head of
:mod:`permalake.engine.duckdb_engine` says what it may call.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from permalake.contracts.schema import Column, Table
from permalake.contracts.sql_text import literal

Severity = Literal["critical", "warning"]
CRITICAL: Severity = "critical"
WARNING: Severity = "warning"


@dataclass(frozen=True, slots=True)
class Rule:
    """A predicate that holds for every row. A failing ``warning`` is reported; the day is published."""

    name: str
    predicate: str
    text: str
    severity: Severity = CRITICAL


@dataclass(frozen=True, slots=True)
class Suite:
    """The rules for the rows of ``table`` beyond its contract."""

    table: str
    rules: tuple[Rule, ...]


def suite(table: str, *rules: Rule) -> Suite:
    """Return the suite of a table.

    Raises:
        ValueError: Two rules have the same name.
    """
    names = [rule.name for rule in rules]
    if len(set(names)) != len(names):
        raise ValueError(f"{table}: two rules have the same name")
    return Suite(table, rules)


def rule(name: str, predicate: str, text: str, severity: Severity = CRITICAL) -> Rule:
    """Return a rule; ``text`` states in one sentence what is expected."""
    return Rule(name, predicate, text, severity)


def contract_rules(table: Table) -> list[Rule]:
    """Return the rules that follow from a contract: nulls, value sets, ranges, patterns, the date."""
    rules = []
    for column in table.columns:
        if column.required:
            rules.append(
                Rule(f"{column.name}_present", f"{column.name} IS NOT NULL", f"{column.name} is never null.")
            )
        rules += value_rules(column)
    if table.time_column:
        rules.append(_date_rule(table.column(table.time_column)))
    return rules


def _date_rule(column: Column) -> Rule:
    moment = (
        column.name
        if column.type == "timestamptz"
        else f"make_timestamp(CAST({column.name} AS BIGINT) * 1000000)"
    )
    return Rule(
        "date_of_milestone", f"date = CAST({moment} AS DATE)", f"date is the UTC date of {column.name}."
    )


def value_rules(column: Column) -> list[Rule]:
    """Return the rules for the values of a column."""
    rules = []
    if column.values is not None:
        listed = ", ".join(literal(value) for value in column.values)
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
                f"regexp_matches({column.name}, {literal(column.pattern)})",
                f"{column.name} matches {column.pattern}",
            )
        )
    return rules


def shown(table: Table, predicate: str) -> tuple[str, ...]:
    """Return the columns to report of a failing row: its key, and what the predicate reads."""
    words = set(re.findall(r"[a-z_][a-z0-9_]*", predicate))
    read = [name for name in table.names if name in words and name not in table.key]
    return (*(name for name in table.key if name != "date"), *read)
