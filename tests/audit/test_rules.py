"""One table through Great Expectations: good rows pass, one wrong value fails the one rule it breaks."""

import json
from dataclasses import replace

import pytest

from permalake.audit.runner import Auditor
from permalake.contracts.sql_functions import SqlFunction
from permalake.domains import domain_of
from permalake.engine.duckdb_engine import DuckDBEngine
from permalake.iota.contracts import IOTA_TABLES
from support.audit_days import DAYS, FIRST, arrow, find, scope, small_network


def auditor(store):
    return Auditor(IOTA_TABLES.values(), domain_of("shimmer").laws(), store)


@pytest.fixture(scope="module")
def audit(tmp_path_factory):
    judge = auditor(tmp_path_factory.mktemp("store"))

    def run(rows, *only):
        return judge.run(scope(rows), DAYS, only=only)

    return run


ID = "a" * 64
BROKEN = [
    ("conflict_reason", 7, "reason_only_of_conflicts", "conflict_reason 7"),
    ("white_flag_index", -1, "white_flag_index_at_least_0", "white_flag_index -1"),
    ("inclusion_state", 3, "inclusion_state_known", "inclusion_state 3"),
    ("message_id", "A" * 64, "message_id_well_formed", f"message_id {'A' * 64}"),
    ("message", None, "message_present", "message null"),
    ("date", DAYS[0].replace(year=2023), "date_within_range", ""),
]


@pytest.mark.parametrize(("column", "value", "rule", "told"), BROKEN)
def test_one_wrong_value_fails_one_rule(audit, column, value, rule, told) -> None:
    rows = small_network()
    find(rows, "messages", milestone_index=FIRST + 2, white_flag_index=1)[column] = value
    report = audit(rows, "messages")
    [failure] = report.failed
    assert (failure.table, failure.name, failure.count) == ("messages", rule, 1)
    assert told in failure.line()
    if column != "date":
        assert report.passed == [DAYS[0], DAYS[2]]
        assert report.failures(DAYS[1]) == [failure.line()]


def test_good_rows_pass_and_their_results_are_kept(audit, tmp_path_factory) -> None:
    report = audit(small_network(), "messages", "tags", "ms_activity", "foundry_outputs")
    assert report.passed == list(DAYS)
    assert report.failed == report.warnings == []
    of_table = {finding.table for finding in report.findings}
    assert of_table == {"messages", "tags", "ms_activity", "foundry_outputs"}
    [results] = tmp_path_factory.getbasetemp().glob("store[0-9]*/results")
    for table in of_table:
        kept = json.loads((results / table / f"{DAYS[0]}_{DAYS[-1]}.json").read_text())
        asked = [finding for finding in report.findings if finding.table == table]
        assert kept["success"]
        assert len(kept["results"]) == len(asked)


def test_a_key_that_stands_twice_is_named(audit) -> None:
    rows = small_network()
    twice = find(rows, "tags", milestone_index=FIRST + 1)
    rows["tags"].append(dict(twice))
    report = audit(rows, "tags")
    [failure] = report.failed
    assert failure.line() == f"tags: key_unique: tag {twice['tag']}, message_id {twice['message_id']}, rows 2"
    assert report.passed == list(DAYS[1:])


def test_a_missing_column_fails_every_day_and_nothing_else_is_asked(tmp_path) -> None:
    rows = small_network()

    def without_version(name):
        return arrow(IOTA_TABLES[name], rows[name]).drop_columns("version")

    damaged = replace(scope(rows), tables_engine=DuckDBEngine(without_version))
    report = auditor(tmp_path).run(damaged, DAYS, only=["messages"])
    assert {finding.name for finding in report.failed} == {"columns", "types"}
    assert report.passed == []
    assert "version" in report.failures(DAYS[0])[0]


def test_an_exception_counts_as_failure_and_is_pinned_to_its_day(tmp_path) -> None:
    """A column that cannot be computed on one day of two; critical even for a rule that only warns."""
    rows = small_network()
    spoilt = SqlFunction("spoilt", _lost_in_transit, ("int", "int"), "int")

    class Damaged(DuckDBEngine):
        def open(self, name):
            super().open(name)
            self.define(spoilt)
            self._connection.execute(f"ALTER VIEW {name} RENAME TO sound_{name}")
            self._connection.execute(
                f"CREATE VIEW {name} AS SELECT * REPLACE (spoilt(milestone_index, version) AS version) "
                f"FROM sound_{name}"
            )

        def narrowed(self, start, end):
            return Damaged(self._table, days=(start, end))

    damaged = replace(scope(rows), tables_engine=Damaged(lambda name: arrow(IOTA_TABLES[name], rows[name])))
    report = auditor(tmp_path).run(damaged, DAYS[:2], only=["messages"])
    assert report.passed == [DAYS[0]]
    assert any("lost in transit" in line for line in report.failures(DAYS[1]))


def _lost_in_transit(index, version):
    if FIRST + 2 in index.to_pylist():
        raise ValueError("lost in transit")
    return version
