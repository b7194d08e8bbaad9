"""Every rule of every table has a row that violates it: here, and through Great Expectations."""

import pytest
from pyspark.sql import functions as F

from permalake.audit.catalogue import audited, suite_of
from permalake.audit.runner import Auditor
from permalake.audit.scope import Scope
from permalake.audit.suite import contract_rules
from permalake.audit.validation import of_rows
from permalake.iota.contracts import IOTA_TABLES
from permalake.wormhole.contracts import WORMHOLE_TABLES
from support.violating_rows import BROKEN, DAY, ONE_DAY, broken_by_contract, valid_row

DOMAINS = {"iota": audited(IOTA_TABLES.values()), "wormhole": audited(WORMHOLE_TABLES.values())}
EVERY = {table.name: table for tables in DOMAINS.values() for table in tables}


def test_every_rule_has_a_violating_row_and_none_is_left_over():
    for name, table in EVERY.items():
        assert set(BROKEN.get(name, {})) == {rule.name for rule in suite_of(table).rules}, name
        assert set(broken_by_contract(table)) == {rule.name for rule in contract_rules(table)}, name
    assert set(BROKEN) <= set(EVERY)


def frame(spark, table, rows):
    """Rows as a frame; every column may be null, as in damaged data."""
    schema = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in table.spark)
    return spark.createDataFrame([tuple(row[name] for name in table.names) for row in rows], schema)


@pytest.mark.parametrize("table", EVERY.values(), ids=EVERY)
def test_each_row_violates_its_rule(spark, table):
    """A row made for a rule of the suite violates this rule alone; the valid row violates none."""
    contract, own = broken_by_contract(table), BROKEN.get(table.name, {})
    rules = [*contract_rules(table), *suite_of(table).rules]
    cases = [("valid", {}), *contract.items(), *own.items()]
    rows = frame(spark, table, [valid_row(table) | change for _, change in cases])
    judged = rows.coalesce(1).select(*(F.expr(rule.predicate).alias(rule.name) for rule in rules)).collect()
    violated = [{rule.name for rule in rules if row[rule.name] is False} for row in judged]
    for (name, _), found in zip(cases, violated, strict=True):
        if name in contract:
            assert name in found
        else:
            assert found == ({name} if name in own else set()), name


@pytest.mark.parametrize("domain", DOMAINS)
def test_great_expectations_finds_every_violation(spark, tmp_path, domain):
    """All violating rows of a table, its valid row twice and on another day: every expectation fails."""
    frames = {}
    for table in DOMAINS[domain]:
        valid = valid_row(table)
        broken = {**broken_by_contract(table), **BROKEN.get(table.name, {})}
        elsewhere = valid | {"date": DAY + 3 * ONE_DAY}
        frames[table.name] = frame(
            spark, table, [valid, valid, elsewhere, *(valid | change for change in broken.values())]
        ).coalesce(1)
    auditor = Auditor(spark, DOMAINS[domain], (), tmp_path)
    scope = Scope(frames.__getitem__, rows=dict.fromkeys(frames, 1))
    report = auditor.run(scope, [DAY], only=list(frames))
    found = {(finding.table, finding.name) for finding in report.findings if not finding.ok}
    assert found == {(table.name, name) for table in DOMAINS[domain] for name in of_rows(table, [DAY])}
    assert report.passed == []
