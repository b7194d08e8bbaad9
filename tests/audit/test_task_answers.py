"""Spark's tasks answer what this process would: the same rows, the same findings."""

from __future__ import annotations

from dataclasses import replace

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from permalake.audit.runner import Auditor
from permalake.audit.task_answers import TaskAnswers
from permalake.domains import domain_of
from permalake.engine.duckdb_engine import DuckDBEngine
from permalake.iota.contracts import IOTA_TABLES
from support.audit_days import DAYS, arrow, find, scope, small_network

LAWS = domain_of("shimmer").laws()


@pytest.fixture
def in_tasks(spark, tmp_path):
    """A scope whose rows lie in files, all of them large."""

    def made(rows, **more):
        def read(name):
            file = tmp_path / f"{name}.parquet"
            pq.write_table(arrow(IOTA_TABLES[name], rows[name]), file)
            return ds.dataset([str(file)])

        tasks = TaskAnswers(lambda: spark, read, lambda name: [read(name)], **more)
        own = DuckDBEngine(read)
        return replace(scope(rows), tables_engine=own, tasks=tasks, is_small=lambda _: False)

    return made


def judged(store, scope, **only):
    report = Auditor(IOTA_TABLES.values(), LAWS, store).run(scope, DAYS, **only)
    return report.findings


def test_sound_days_pass(in_tasks, tmp_path) -> None:
    found = judged(tmp_path / "store", in_tasks(small_network()))
    assert found == judged(tmp_path / "own", scope(small_network()))
    assert {finding.table for finding in found} >= {"messages", "ledger_updates", "milestones"}
    assert not [finding for finding in found if finding.is_failure]


def test_a_wrong_value_is_named_with_its_day(in_tasks, tmp_path) -> None:
    rows = small_network()
    find(rows, "messages", white_flag_index=1)["conflict_reason"] = 7
    rows["parents"].pop()
    found = judged(tmp_path / "store", in_tasks(rows))
    assert found == judged(tmp_path / "own", scope(rows))
    failed = {finding.name for finding in found if finding.is_failure}
    assert "reason_only_of_conflicts" in failed
    assert len(failed) > 1


def test_what_cannot_be_computed_is_pinned_to_its_day(in_tasks, tmp_path, monkeypatch) -> None:
    """Days are halved, in tasks too, until one alone fails."""
    law = replace(LAWS[0], name="lost", kind="violations", check=None, sides=(_LOST,))
    monkeypatch.setattr(__name__ + ".LAWS", [law])
    found = judged(tmp_path / "store", in_tasks(small_network()), only=["laws"])
    [failure] = found
    assert "lost in transit" in str(failure.error)
    assert list(failure.days) == [DAYS[1]]


def test_rows_beside_the_days_are_read_though_days_are_halved(in_tasks, tmp_path, monkeypatch) -> None:
    """As a quote of the day before, which prices a transfer."""
    laws = [
        replace(LAWS[0], name=name, kind="violations", check=None, sides=(query,))
        for name, query in (("lost", _LOST), ("near", _ALONE))
    ]
    monkeypatch.setattr(__name__ + ".LAWS", laws)
    found = judged(tmp_path / "store", in_tasks(small_network(), reach={"metrics_cache": 1}), only=["laws"])
    [failure] = [finding for finding in found if finding.is_failure]
    assert (failure.name, list(failure.days)) == ("lost", [DAYS[1]])
    found = judged(tmp_path / "store", in_tasks(small_network()), only=["laws"])
    assert {finding.name for finding in found if finding.is_failure} == {"lost", "near"}


_LOST = (
    "SELECT date, 'a' AS place, 'b' AS expected, 'c' AS found FROM milestones "
    f"WHERE date = DATE'{DAYS[1]}' AND error('lost in transit') IS NULL"
)
_ALONE = (
    "SELECT days.date AS date, 'a' AS place, 'the day before' AS expected, 'none' AS found "
    "FROM date_cache AS days ANTI JOIN metrics_cache AS near ON near.date = days.date - 1 "
    f"WHERE days.date > DATE'{DAYS[0]}'"
)
