"""A Spark job that is killed ends the run with one line that says so."""

from __future__ import annotations

from fault_runs import start
from fault_watch import POINTS, Watch, family, kill, wait_for


def test_a_killed_spark_job_is_told_on_one_line(lake_of_its_own):
    config = lake_of_its_own()
    watch = Watch(config.parent / "warehouse")
    run = start(config)
    assert wait_for(POINTS["ingest begun"], watch, run)
    kill([process for process in family(run.pid) if process.name() == "java"])
    assert run.wait(timeout=120) == 1
    last = (config.parent / "run.log").read_text().strip().splitlines()[-1]
    assert last.startswith("permalake: "), last
    assert "Traceback" not in (config.parent / "run.log").read_text()
