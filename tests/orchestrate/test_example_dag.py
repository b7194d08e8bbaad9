"""The example DAG of the documentation runs on the lake of today."""

from __future__ import annotations

from types import SimpleNamespace

from permalake.paths import ROOT
from support.lakes import DAY1, DAY2, NETWORK, OpenLake, pass_audit, put, stage_day


def test_the_example_counts_the_published_days_of_its_events(dag_bag, settings, config, monkeypatch) -> None:
    lake = OpenLake(settings)
    counts = {"message_count": 5, "included_transaction_count": 0, "conflicting_transaction_count": 0}
    counts |= {"transferred_tokens": 0, "max_outputs": 0, "used_tags": 0}
    for day, milestone in ((DAY1, 1), (DAY2, 2)):
        attempt = lake.begin(NETWORK, day, day, str(day))
        stage_day(settings, attempt, day, milestone, 5)
        put(settings, attempt, "daily_extended", [{"date": day, **counts}])
        lake.builds.publish(pass_audit(attempt))
    lake.leave()
    monkeypatch.setenv("PERMALAKE_CONFIG", str(config))
    bag = type(dag_bag)(str(ROOT / "docs" / "examples"))
    assert bag.import_errors == {}
    task = bag.dags["on_published_day"].get_task("count_messages")
    event = SimpleNamespace(extra={"network": NETWORK, "days": [str(DAY1)]})
    assert task.python_callable(triggering_asset_events={"asset": [event]}) == {f"{NETWORK} {DAY1}": 5}
