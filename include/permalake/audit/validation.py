"""Contracts, suites and laws as expectations of Great Expectations, and its results as findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from great_expectations.expectations.core.expect_table_columns_to_match_ordered_list import (
    ExpectTableColumnsToMatchOrderedList,
)
from great_expectations.expectations.metadata_types import FailureSeverity

from permalake.audit.catalogue import suite_of
from permalake.audit.expectations import ExpectColumnTypes, ExpectKeyToBeUnique, ExpectRowsToMeet
from permalake.audit.findings import Finding, one_line
from permalake.audit.laws import Law
from permalake.audit.outcomes import KEY_UNIQUE
from permalake.audit.suite import CRITICAL, WARNING, Rule, contract_rules, shown
from permalake.contracts.schema import Table

if TYPE_CHECKING:
    from great_expectations.core import ExpectationSuiteValidationResult
    from great_expectations.expectations.expectation import Expectation

ExpectationsByName = dict[str, tuple[str, str, "Expectation"]]
"""Expectations by name: the table to report under, what is expected in words, the expectation."""


def of_schema(table: Table) -> ExpectationsByName:
    """Return the expectations of a table's columns: they read no rows."""
    types = {field.name: field.dataType.simpleString() for field in table.spark}
    columns = ExpectTableColumnsToMatchOrderedList(
        column_list=list(table.names), severity=FailureSeverity.CRITICAL, meta={"rule": "columns"}
    )
    typed = ExpectColumnTypes(
        rule="types", types=types, severity=FailureSeverity.CRITICAL, meta={"rule": "types"}
    )
    return {
        "columns": (table.name, "Columns are those of the contract, in order.", columns),
        "types": (table.name, "Columns have the types of the contract.", typed),
    }


def rules_of(table: Table, days: Sequence[date]) -> list[Rule]:
    """Return the rules of a table's rows: its contract's, that of the audited days, its suite."""
    span = f"date BETWEEN DATE'{min(days)}' AND DATE'{max(days)}'"
    if table.commit == "side":  # A quote may be some hours older or younger than what it prices.
        span = f"date BETWEEN DATE'{min(days) - timedelta(1)}' AND DATE'{max(days) + timedelta(1)}'"
    within = Rule("date_within_range", span, "date is one of the audited days.")
    return [*contract_rules(table), within, *suite_of(table).rules]


def of_rows(table: Table, rules: Sequence[Rule]) -> ExpectationsByName:
    """Return the expectations of a table's rows: its key and its rules."""
    expectations: ExpectationsByName = {
        rule.name: (table.name, rule.text, _of_rule(rule, shown(table, rule.predicate))) for rule in rules
    }
    key = ExpectKeyToBeUnique(
        rule=KEY_UNIQUE, key=list(table.key), severity=FailureSeverity.CRITICAL, meta={"rule": KEY_UNIQUE}
    )
    return {KEY_UNIQUE: (table.name, f"({', '.join(table.key)}) identifies a row.", key)} | expectations


def _of_rule(rule: Rule, columns: Sequence[str]) -> Expectation:
    return ExpectRowsToMeet(
        rule=rule.name,
        predicate=rule.predicate,
        shown=list(columns),
        description=rule.text,
        severity=FailureSeverity(rule.severity),
        meta={"rule": rule.name},
    )


def of_laws(laws: Sequence[Law], protocol: str | None) -> ExpectationsByName:
    """Return the expectations of laws, over what is found of them."""
    return {law.name: (law.table, law.text, _of_law(law, protocol)) for law in laws}


def _of_law(law: Law, protocol: str | None) -> Expectation:
    rule = Rule(law.name, f"law <> '{law.name}'", law.text, law.severity_on(protocol))
    return _of_rule(rule, ("place", "expected", "found"))


def findings_of(result: ExpectationSuiteValidationResult, expectations: ExpectationsByName) -> list[Finding]:
    """Return the findings of a validation, in the order of ``expectations``."""
    findings: list[Finding] = []
    for outcome in result.results:
        config = outcome.expectation_config
        name = str((config.meta if config else None or {})["rule"])
        table, text, expectation = expectations[name]
        findings.append(
            Finding(
                table,
                name,
                text,
                WARNING if expectation.severity == FailureSeverity.WARNING else CRITICAL,
                bool(outcome.success),
                **_outcome(outcome.result or {}, outcome.exception_info or {}),
            )
        )
    order = list(expectations)
    return sorted(findings, key=lambda finding: order.index(finding.name))


def _outcome(result: Mapping[str, Any], exception: Mapping[str, Any]) -> dict[str, Any]:
    if error := _raised(exception):
        return {"error": error}
    details = result.get("details") or {}
    rows = tuple(details.get("sample") or ())
    if "mismatched" in details:
        wrong = (details["mismatched"], list(result["observed_value"]))
        return {"count": 1, "sample": ({"columns": "columns", "expected": wrong[0], "found": wrong[1]},)}
    days = {date.fromisoformat(day): count for day, count in (details.get("days") or {}).items() if day}
    count = result.get("observed_value")
    return {"count": count if isinstance(count, int) else 0, "days": days, "sample": rows}


def _raised(exception: Mapping[str, Any]) -> str | None:
    """Return the message of an exception in an expectation, or in one of its metrics."""
    inner = [exception] if "raised_exception" in exception else list(exception.values())
    for raised in inner:
        if isinstance(raised, Mapping) and raised.get("raised_exception"):
            return one_line(str(raised.get("exception_message") or "could not be computed"))
    return None
