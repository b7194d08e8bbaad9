"""Processor seconds of each step of a build.

A step's time is in the lake's ledger of steps. Versions without one gave each step a Spark submit of its own.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import psutil

from bench.machine import Usage, watch

_JOB = re.compile(r"/spark/(\w+)\.py")
_STEPS = {"ingest": "ingest_decode", "analytics": "analytics", "enrich": "enrich", "audit": "audit"}
_LEDGER = """
SELECT step, ended_at, milliseconds FROM permalake_steps WHERE milliseconds IS NOT NULL ORDER BY ended_at
"""
Spans = Mapping[str, tuple[float, float]]


@dataclass
class _Clock:
    """What the processes had used when, and when each Spark job was there."""

    times: list[float] = field(default_factory=list)
    used: list[float] = field(default_factory=list)
    jobs: dict[str, tuple[float, float]] = field(default_factory=dict)

    def look(self, cpu_seconds: float, family: Sequence[psutil.Process]) -> None:
        now = time.time()
        self.times.append(now)
        self.used.append(cpu_seconds)
        for name in {job for process in family for job in _JOB.findall(_command(process))}:
            began, _ = self.jobs.get(name, (now, now))
            self.jobs[name] = (began, now)

    def between(self, began: float, ended: float) -> float:
        first, last = np.interp([began, ended], self.times, self.used)
        return float(last - first)


def watch_steps(
    command: Sequence[str], environment: Mapping[str, str], warehouse: Path
) -> tuple[Usage, dict[str, float]]:
    """Run a build in a new lake and watch it; return what each step used, and what is none's as ``rest``."""
    clock = _Clock()
    usage = watch(command, environment, clock.look)
    spans = _ledger(warehouse) or {_step_of(job): span for job, span in clock.jobs.items()}
    used = {step: clock.between(*span) for step, span in spans.items()}
    return usage, {**used, "rest": usage.cpu_seconds - sum(used.values())}


def _ledger(warehouse: Path) -> Spans:
    """Return when each step began and ended; nothing where the lake has no ledger."""
    [file] = warehouse.glob("*.db")
    with closing(sqlite3.connect(file)) as database:
        try:
            rows = database.execute(_LEDGER).fetchall()
        except sqlite3.OperationalError:
            return {}
    ends = {step: (datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp(), ms) for step, at, ms in rows}
    return {step: (end - ms / 1000, end) for step, (end, ms) in ends.items()}


def _step_of(job: str) -> str:
    return next(step for part, step in _STEPS.items() if job.endswith(part))


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:  # it has ended
        return ""
