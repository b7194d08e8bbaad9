"""The step ledger: every try of every step is a row, and a result is claimed once, while it still holds."""

from __future__ import annotations

from datetime import date

import pytest

from permalake.contracts.steps import StepResult
from permalake.lake.database import Database
from permalake.lake.step_ledger import SUPERSEDED, StepLedger

DAYS = (date(2022, 9, 28), date(2022, 9, 29))
DONE = StepResult(
    rows={"messages": 81},
    quarantined=2,
    seconds=1.5,
    log=("ingest: 81 messages",),
    docs="/docs/index.html",
    served={"cassandra": 1},
    days=DAYS,
)


@pytest.fixture
def ledger(tmp_path):
    return StepLedger(Database(f"sqlite:///{tmp_path}/catalog.db"))


def done(ledger, step="audit", run="run", result=DONE, attempt="stage_1", inputs="abc"):
    key = ledger.start("shimmer", run, step, DAYS, dag_run="dag", submit="ingest_decode")
    ledger.finish(key, result, attempt_id=attempt, inputs=inputs)
    return key


def claim(ledger, step="audit", attempt="stage_1", inputs="abc"):
    return ledger.claim("shimmer", "run", step, by="dag", attempt_id=attempt, inputs=inputs)


def test_a_row_keeps_everything(ledger) -> None:
    key = done(ledger)
    (row,) = ledger.of_run("run")
    assert row.key == key
    assert row.result == DONE
    assert (row.start, row.end, row.submit, row.dag_run) == (*DAYS, "ingest_decode", "dag")
    assert row.began <= row.ended
    assert ledger.of_run("dag") == [row], "found by the id that Airflow shows, too"
    assert ledger.latest("shimmer", "run", "audit") == row
    assert ledger.of_run("dag", "testnet") == []


def test_a_result_is_claimed_once(ledger) -> None:
    done(ledger)
    assert claim(ledger) == DONE
    assert claim(ledger) is None
    assert ledger.of_run("run")[0].claimed_by == "dag"


@pytest.mark.parametrize(
    "other", [{"attempt": "stage_2"}, {"inputs": "another staging"}, {"step": "ingest_decode"}]
)
def test_a_result_counts_for_what_it_worked_on_alone(ledger, other) -> None:
    done(ledger)
    assert claim(ledger, **other) is None
    assert claim(ledger) == DONE


def test_invalid_days_are_claimed_and_failures_are_not(ledger) -> None:
    done(ledger, result=StepResult("failed", reason="no answer"))
    assert claim(ledger) is None
    done(ledger, result=StepResult("invalid", reason="bad day", retryable=False))
    assert claim(ledger) == StepResult("invalid", reason="bad day", retryable=False)


def test_each_try_has_a_row_and_the_newest_counts(ledger) -> None:
    assert [done(ledger).number for _ in range(3)] == [1, 2, 3]
    assert [row.key.number for row in ledger.of_run("run")] == [1, 2, 3]
    assert [row.key.number for row in ledger.recent("shimmer", most=2)] == [3, 2]


def test_a_process_that_died_leaves_a_failed_try(ledger) -> None:
    ledger.start("shimmer", "run", "audit", DAYS)
    done(ledger)
    first, second = ledger.of_run("run")
    assert (first.result.state, second.result.state) == ("failed", "done")
    assert first.result.reason == "the process ended before the step did"


def test_results_that_rest_on_work_done_anew_do_not_count(ledger) -> None:
    done(ledger, "audit")
    done(ledger, "analytics")
    ledger.supersede("shimmer", "run", ["audit"])
    ledger.supersede("shimmer", "another", ["analytics"])
    assert claim(ledger, "audit") is None
    assert claim(ledger, "analytics") == DONE
    assert ledger.latest("shimmer", "run", "audit").claimed_by == SUPERSEDED


def test_an_interrupted_run_leaves_that_of_another_network_with_its_id_alone(ledger) -> None:
    for network in ("shimmer", "wormhole"):
        ledger.start(network, "run", "audit", DAYS)
    ledger.interrupt("wormhole", "run")
    states = {row.key.network: (row.result.state, row.result.reason) for row in ledger.of_run("run")}
    assert states == {"shimmer": ("running", None), "wormhole": ("failed", "interrupted")}
