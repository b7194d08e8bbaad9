"""The pages of runs show every try with its outcome, and nothing of a log as markup."""

from __future__ import annotations

from datetime import date

from permalake.contracts.steps import StepResult
from permalake.lake.state import Database
from permalake.lake.step_ledger import StepLedger
from permalake.pages.runs import run_page, runs_page

DAYS = (date(2022, 9, 28), date(2022, 9, 29))


def test_runs_and_their_steps_are_shown_with_timings_and_reasons(tmp_path):
    ledger = StepLedger(Database(f"sqlite:///{tmp_path}/catalog.db"))
    key = ledger.start("shimmer", "run/1", "ingest_decode", DAYS, submit="ingest_decode")
    ledger.finish(key, StepResult(rows={"messages": 81}, seconds=12.34, log=("<b>81 messages</b>",)))
    key = ledger.start("shimmer", "run/1", "audit", DAYS)
    ledger.finish(key, StepResult("invalid", reason="supply is not conserved", retryable=False))
    ledger.start("wormhole", "other", "ingest_decode", DAYS)
    page = run_page("run/1", ledger.of_run("run/1"))
    assert page.count("<tr>") == 3
    for shown in ("12.3", "supply is not conserved", "shimmer 2022-09-28 to 2022-09-29", ">81<"):
        assert shown in page
    assert "&lt;b&gt;81 messages" in page
    runs = runs_page(ledger.recent())
    assert runs.count('href="run?id=') == 2
    assert 'href="run?id=run/1"' in runs
    assert runs.index("other") < runs.index("run/1"), "newest first"
