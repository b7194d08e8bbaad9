"""Every rule of every table has a row that violates it: here, and through Great Expectations."""

import pytest

from permalake.audit.catalogue import suite_of
from permalake.audit.runner import Auditor
from permalake.audit.suite import contract_rules
from permalake.audit.validation import of_rows, rules_of
from support.audit_days import scope
from support.violating_rows import BROKEN, DAY, DOMAINS, EVERY, broken_by_contract, valid_row, violating


def test_every_rule_has_a_violating_row_and_none_is_left_over() -> None:
    for name, table in EVERY.items():
        assert set(BROKEN.get(name, {})) == {rule.name for rule in suite_of(table).rules}, name
        assert set(broken_by_contract(table)) == {rule.name for rule in contract_rules(table)}, name
    assert set(BROKEN) <= set(EVERY)


@pytest.mark.parametrize("table", EVERY.values(), ids=EVERY)
def test_each_row_violates_its_rule(table) -> None:
    """A row made for a rule of the suite violates this rule alone; the valid row violates none."""
    contract, own = broken_by_contract(table), BROKEN.get(table.name, {})
    rules = [*contract_rules(table), *suite_of(table).rules]
    cases = [("valid", {}), *contract.items(), *own.items()]
    rows = {table.name: [valid_row(table) | change for _, change in cases]}
    engine = scope(rows, {table.name: table}).engine(table.name)
    judged = ", ".join(f"{rule.predicate} AS rule_{at}" for at, rule in enumerate(rules))
    violated = [
        {rule.name for at, rule in enumerate(rules) if row[f"rule_{at}"] is False}
        for row in engine.rows(f"SELECT {judged} FROM {table.name}")
    ]
    for (name, _), found in zip(cases, violated, strict=True):
        if name in contract:
            assert name in found
        else:
            assert found == ({name} if name in own else set()), name


@pytest.mark.parametrize("domain", DOMAINS)
def test_great_expectations_finds_every_violation(tmp_path, domain) -> None:
    """Every expectation of every table fails."""
    tables = {table.name: table for table in DOMAINS[domain]}
    auditor = Auditor(DOMAINS[domain], (), tmp_path)
    report = auditor.run(scope(violating(DOMAINS[domain]), tables), [DAY], only=list(tables))
    found = {(finding.table, finding.name) for finding in report.findings if not finding.ok}
    wanted = {
        (table.name, name) for table in DOMAINS[domain] for name in of_rows(table, rules_of(table, [DAY]))
    }
    assert found == wanted
    assert report.passed == []
