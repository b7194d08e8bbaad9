"""What a day costs after a long history and after a short one; days per hour, as one range and one by one.

``python -m bench.iota_history [DAYS]``: simulates small days (synthetic), builds all but the last as one
range in one lake and only two of them in another, then times the last day in both, in turn, several
times: each time a run of its own, every step of the DAG included.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from datetime import date, timedelta
from pathlib import Path

from bench.iota_build import environment
from bench.machine import say, watch
from bench.simulated import COMMAND, simulated

FIRST = date(2023, 1, 1)
MESSAGES_A_DAY = 100
SHORT = 2
TIMES = 5


def archive(days: int) -> Path:
    """Simulated small Stardust days, made once."""
    size = ("--messages", str(days * MESSAGES_A_DAY), "--milestones-per-day", "6")
    return simulated(f"stardust-days-{days}", "iota", *size, "--days", str(days), "--start", str(FIRST))


def run(days: int = 366) -> list[dict]:
    """Median seconds of the last day after a range of ``days - 1`` days and after two days; days per hour
    of that range beside those of single runs."""
    source = archive(days)
    last = FIRST + timedelta(days - 1)
    with tempfile.TemporaryDirectory(prefix="bench-history-") as folder:
        lakes, ranges = {}, {}
        for history in (days - 1, SHORT):
            lake = Path(folder) / str(history)
            lake.mkdir()
            lakes[history] = environment(lake, source)
            span = ["--date", str(last - timedelta(history)), "--to", str(last - timedelta(1))]
            ranges[history] = watch([COMMAND, "run", "iota", *span], lakes[history])
            say(f"{history} days as one range: {ranges[history].seconds:.0f} s")
        seconds: dict[int, list[float]] = {history: [] for history in lakes}
        for _ in range(TIMES):
            for history, environ in lakes.items():
                command = [COMMAND, "run", "iota", "--date", str(last), "--force"]
                seconds[history].append(watch(command, environ).seconds)
                say(f"the last day after {history} days: {seconds[history][-1]:.1f} s")
    long, short = (statistics.median(times) for times in seconds.values())
    together, one_by_one = (days - 1) * 3600 / ranges[days - 1].seconds, 3600 / short
    return [
        {
            "name": f"A small IOTA day after {days - 1} days",
            "unit": "s",
            "ours": round(long, 1),
            "peer": round(short, 1),
            "peer_name": f"the same day after {SHORT} days",
            "ratio": round(short / long, 3),
            "all": {str(history): [round(s, 1) for s in times] for history, times in seconds.items()},
        },
        {
            "name": f"{days - 1} small days built as one range",
            "unit": "days/h",
            "ours": round(together),
            "peer": round(one_by_one),
            "peer_name": "a run for each day",
            "ratio": round(together / one_by_one, 1),
            "seconds": round(ranges[days - 1].seconds, 1),
            "peak_mib": ranges[days - 1].peak_bytes >> 20,
        },
    ]


if __name__ == "__main__":
    print(json.dumps(run(*map(int, sys.argv[1:])), indent=1))
