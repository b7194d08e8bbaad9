"""What a day costs after a long history and after a short one.

``python -m bench.iota_history [DAYS]``: simulates small days (synthetic), builds all but the last as one
range in one lake and only two of them in another, then times the last day in both, in turn, several
times.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from datetime import date, timedelta
from pathlib import Path

from bench.iota_build import COMMAND, DATA, environment
from bench.machine import watch

FIRST = date(2023, 1, 1)
MESSAGES_A_DAY = 500
TIMES = 3


def archive(days: int) -> Path:
    """Simulated small Stardust days, made once."""
    folder = DATA / f"stardust-days-{days}"
    if not folder.exists():
        part = folder.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        size = ["--messages", str(days * MESSAGES_A_DAY), "--milestones-per-day", "20"]
        when = ["--days", str(days), "--start", str(FIRST)]
        subprocess.run([COMMAND, "simulate", "iota", *size, *when, "--out", str(part)], stdout=2, check=True)
        part.rename(folder)
    return folder


def run(days: int = 201) -> dict:
    """Median seconds of the last day after a range of ``days - 1`` days and after two days."""
    source = archive(days)
    last = FIRST + timedelta(days - 1)
    with tempfile.TemporaryDirectory(prefix="bench-history-") as folder:
        lakes = {}
        for history in (days - 1, 2):
            lake = Path(folder) / str(history)
            lake.mkdir()
            lakes[history] = environment(lake, source)
            span = ["--date", str(last - timedelta(history)), "--to", str(last - timedelta(1))]
            built = watch([COMMAND, "run", "iota", *span], lakes[history])
            print(f"{history} days as one range: {built.seconds:.0f} s", file=sys.stderr)
        seconds: dict[int, list[float]] = {history: [] for history in lakes}
        for _ in range(TIMES):
            for history, lake in lakes.items():
                command = [COMMAND, "run", "iota", "--date", str(last), "--force"]
                seconds[history].append(watch(command, lake).seconds)
    long, short = (statistics.median(seconds[history]) for history in lakes)
    return {
        "name": f"A small IOTA day after {days - 1} days",
        "unit": "s",
        "ours": round(long, 1),
        "peer": round(short, 1),
        "peer_name": "the same day after 2 days",
        "ratio": round(short / long, 3),
        "all": {str(history): [round(s, 1) for s in times] for history, times in seconds.items()},
    }


if __name__ == "__main__":
    print(json.dumps(run(*map(int, sys.argv[1:])), indent=1))
