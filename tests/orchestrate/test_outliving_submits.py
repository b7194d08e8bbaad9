"""A Spark submit that outlives its task: what it published is told by the next try, once."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace

import pytest
from airflow.sdk.exceptions import AirflowSkipException

from permalake.config import load_settings
from permalake.contracts.steps import PUBLISH, StepResult
from permalake.iota.day import IOTA
from permalake.orchestrate.in_task import InTaskStep
from permalake.orchestrate.submit_task import SparkStep
from permalake.pipeline.fingerprint import fingerprint
from permalake.pipeline.jobs import Order, run_step
from permalake.pipeline.workspace import Workspace
from support.lakes import DAY1, NETWORK, OpenLake, pass_audit, stage_day

RUN = "backfill__2022-09-29"
INGEST = IOTA.steps[0]


@pytest.fixture
def work(config, monkeypatch):
    """A lake in which the submit of a killed task built and published a day."""
    monkeypatch.setenv("PERMALAKE_CONFIG", str(config))
    settings = load_settings()
    work = Workspace.open(settings, IOTA, NETWORK)
    ingest = work.steps.start(NETWORK, RUN, INGEST.name, (DAY1, DAY1), submit=INGEST.name)
    lake = OpenLake(settings)
    attempt = lake.begin(NETWORK, DAY1, DAY1, RUN, fingerprint=fingerprint(work.inputs))
    stage_day(settings, attempt, DAY1, 1, 5)
    pass_audit(attempt)
    lake.leave()
    staged = work.builds.staged(NETWORK, RUN)
    work.steps.finish(
        ingest,
        StepResult("done", rows={"messages": 5}),
        attempt_id=staged.id,
        inputs=work.staged_state(staged, INGEST),
    )
    run_step(work, Order(NETWORK, DAY1, DAY1, RUN), IOTA.step(PUBLISH), submit=INGEST.name)
    return work


def context():
    """The context of a task of the same run."""
    return {
        "dag_run": SimpleNamespace(conf={}, run_type="manual"),
        "run_id": RUN,
        "params": {"network": NETWORK, "start": str(DAY1)},
        "ti": SimpleNamespace(),
        "outlet_events": defaultdict(SimpleNamespace),
    }


def test_the_next_try_claims_what_was_published_and_the_asset_is_told(work, dag_bag):
    assert SparkStep(domain=IOTA, step=INGEST).execute(context())["rows"] == {"messages": 5}
    (asset,) = dag_bag.dags["iota_daily"].task_dict[PUBLISH].outlets
    told = context()
    publish = InTaskStep(domain=IOTA, step=IOTA.step(PUBLISH), outlets=[asset])
    assert publish.execute(told)["days"] == [str(DAY1)]
    assert told["outlet_events"][asset].extra == {"network": NETWORK, "days": [str(DAY1)]}


def test_once_told_the_day_is_unchanged_and_free(work):
    staged = work.builds.staged(NETWORK, RUN)
    inputs = work.staged_state(staged, IOTA.step(PUBLISH))
    assert work.steps.claim(NETWORK, RUN, PUBLISH, by=RUN, attempt_id=staged.id, inputs=inputs)
    with pytest.raises(AirflowSkipException, match="published and unchanged"):
        SparkStep(domain=IOTA, step=INGEST).execute(context())
    work.builds.lease(NETWORK, DAY1, DAY1, "another run")


def test_days_that_another_run_published_are_skipped(work):
    other = context() | {"run_id": "manual__1"}
    with pytest.raises(AirflowSkipException, match="published and unchanged"):
        SparkStep(domain=IOTA, step=INGEST).execute(other)
