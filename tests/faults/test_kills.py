"""Kill a run anywhere with SIGKILL, run the day again: the tables are those of a run that nobody disturbed.

``make long`` tries every point, ``make test`` one that a fixed seed chooses.
"""

from __future__ import annotations

import random
import signal
from datetime import date

import psutil
import pytest

from permalake.config import load_settings
from permalake.domains import domain_of
from permalake.pipeline.workspace import Workspace
from support.fault_watch import POINTS, Watch, family, kill, wait_for
from support.length import LONG
from support.whole_runs import DAY, assert_same, finish, rows, start

SEED = 20220928
CHOSEN = list(POINTS) if LONG else sorted(random.Random(SEED).sample(list(POINTS), 1))


@pytest.mark.scaled
@pytest.mark.parametrize("point", CHOSEN)
def test_a_killed_day_run_again_is_the_same_day(point, undisturbed, lake_of_its_own) -> None:
    config = lake_of_its_own()
    watch = Watch(config.parent / "warehouse")
    run = start(config)
    assert wait_for(POINTS[point], watch, run), (config.parent / "run.log").read_text()
    kill(family(run.pid))
    # The submit of the audit publishes at once, so a kill after the verdict may come after the publication.
    seen = {name: len(table) for name, table in rows(config, "shimmer").items() if len(table)}
    whole = {name: len(undisturbed[name]) for name in seen}
    assert not seen or (point == "judged, not published" and seen == whole), "a reader saw half a day"

    finish(config)
    again = rows(config, "shimmer")
    assert_same(again, undisturbed)
    assert len(again["messages"]) == 81


@pytest.mark.long
def test_a_killed_spark_job_is_told_on_one_line(lake_of_its_own) -> None:
    config = lake_of_its_own()
    watch = Watch(config.parent / "warehouse")
    run = start(config)
    assert wait_for(POINTS["ingest begun"], watch, run)
    kill([process for process in family(run.pid) if process.name() == "java"])
    assert run.wait(timeout=600) == 1
    last = (config.parent / "run.log").read_text().strip().splitlines()[-1]
    assert last.startswith("permalake: "), last
    assert "Traceback" not in (config.parent / "run.log").read_text()


@pytest.mark.parametrize(
    ("sign", "code"),
    [
        pytest.param(signal.SIGTERM, 1, id="asked", marks=pytest.mark.long),
        pytest.param(signal.SIGKILL, -signal.SIGKILL, id="killed"),
    ],
)
def test_a_run_that_is_ended_takes_its_spark_job_along(lake_of_its_own, sign, code) -> None:
    config = lake_of_its_own()
    watch = Watch(config.parent / "warehouse")
    run = start(config)
    assert wait_for(POINTS["ingest begun"], watch, run)
    below = family(run.pid)[1:]
    assert "java" in {process.name() for process in below}
    run.send_signal(sign)
    assert run.wait(timeout=600) == code
    _, alive = psutil.wait_procs(below, timeout=300)
    assert alive == []
    said = (config.parent / "run.log").read_text().splitlines()
    assert (said[-1] == "permalake: interrupted") == (sign == signal.SIGTERM)
    # Another run need not wait for a lease of one that is over.
    settings = load_settings(config)
    work = Workspace.open(settings, domain_of("shimmer"), "shimmer")
    work.builds.lease("shimmer", date.fromisoformat(DAY), date.fromisoformat(DAY), "the next run")
