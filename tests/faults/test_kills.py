"""Kill a run anywhere with SIGKILL, run the day again: the tables are those of a run that nobody disturbed.

Ten points, half an hour: a part of ``make long``. In ``make test`` a scheduler is killed with all that it
runs (``tests/operators``), and the same is asked.
"""

from __future__ import annotations

import pytest
from fault_runs import start
from fault_watch import POINTS, Watch, family, kill, rows, wait_for


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_day_run_again_is_the_same_day(point, undisturbed, lake_of_its_own):
    config = lake_of_its_own()
    watch = Watch(config.parent / "warehouse")
    run = start(config)
    assert wait_for(POINTS[point], watch, run), (config.parent / "run.log").read_text()
    kill(family(run.pid))
    assert not any(len(table) for table in rows(config, "shimmer").values()), "a reader saw half a day"

    assert start(config).wait(timeout=400) == 0, (config.parent / "run.log").read_text()
    again = rows(config, "shimmer")
    assert again.keys() == undisturbed.keys()
    for name, table in undisturbed.items():
        assert again[name].equals(table), name
    assert len(again["messages"]) == 81
