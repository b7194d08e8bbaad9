"""A Spark submit that outlives its task: what it published is told by the next try, once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from airflow.sdk.exceptions import AirflowSkipException
from airflow.sdk.execution_time.context import OutletEventAccessors

from permalake.config import load_settings
from permalake.contracts.steps import PUBLISH, StepResult
from permalake.iota.day import IOTA
from permalake.orchestrate import assets
from permalake.orchestrate.step_task import InTaskStep
from permalake.orchestrate.submit_task import SparkStep
from permalake.pipeline.fingerprint import fingerprint
from permalake.pipeline.jobs import StepArguments, run_step
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
    run_step(work, StepArguments(NETWORK, DAY1, DAY1, RUN), IOTA.step(PUBLISH), submit=INGEST.name)
    return work


def context():
    """The context of a task of the same run."""
    return {
        "dag_run": SimpleNamespace(conf={}, run_type="manual", run_after=datetime.now(UTC)),
        "run_id": RUN,
        "params": {"network": NETWORK, "start": str(DAY1)},
        "ti": SimpleNamespace(id="try", xcom_push=lambda *_: None),
        "outlet_events": OutletEventAccessors(),
    }


def test_the_next_try_claims_what_was_published_and_the_asset_is_told(work, dag_bag) -> None:
    assert SparkStep(domain=IOTA, step=INGEST).execute(context())["rows"] == {"messages": 5}
    (alias,) = dag_bag.dags["iota_daily"].task_dict[PUBLISH].outlets
    given = context()
    publish = InTaskStep(domain=IOTA, step=IOTA.step(PUBLISH), outlets=[alias])
    assert publish.execute(given)["days"] == [str(DAY1)]
    (event,) = given["outlet_events"][alias].asset_alias_events
    assert event.dest_asset_key.uri == "permalake://published/iota"
    assert event.extra == {"network": NETWORK, "date": str(DAY1), "days": [str(DAY1)]}


@pytest.mark.parametrize(("days", "events"), [(1, 1), (31, 31), (32, 16), (3000, 31)])
def test_a_long_range_has_few_events_that_name_every_day(days, events) -> None:
    published = tuple(DAY1 + timedelta(number) for number in range(days))
    given = OutletEventAccessors()
    assets.announce(IOTA, IOTA.step(PUBLISH), NETWORK, StepResult(days=published), given)
    extras = [one.extra for one in given[assets.published_days("iota")].asset_alias_events]
    assert len(extras) == events
    assert [day for extra in extras for day in extra["days"]] == [str(day) for day in published]
    assert all(extra["date"] == extra["days"][0] for extra in extras)


def test_once_told_the_day_is_unchanged_and_free(work) -> None:
    staged = work.builds.staged(NETWORK, RUN)
    inputs = work.staged_state(staged, IOTA.step(PUBLISH))
    assert work.steps.claim(NETWORK, RUN, PUBLISH, by=RUN, attempt_id=staged.id, inputs=inputs)
    with pytest.raises(AirflowSkipException, match="published and unchanged"):
        SparkStep(domain=IOTA, step=INGEST).execute(context())
    work.builds.lease(NETWORK, DAY1, DAY1, "another run")


def test_days_that_another_run_published_are_skipped(work) -> None:
    other = context() | {"run_id": "manual__1"}
    with pytest.raises(AirflowSkipException, match="published and unchanged"):
        SparkStep(domain=IOTA, step=INGEST).execute(other)
