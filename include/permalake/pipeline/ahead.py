"""Jobs of a small day in one submit: the first one's process goes on with those of the tasks after it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import psutil

from permalake.config import load_settings
from permalake.errors import RefusedError
from permalake.lake import Lake
from permalake.pipeline import jobs


def run(name: str, main: Callable[[], None]) -> None:
    """Run ``main``, the job ``name``, then the jobs that ``--ahead`` names, as long as they succeed.

    What each has done is remembered for its task. Only the first may fail: where another one does, its task
    submits it again, unless it has refused its days.
    """
    job = jobs.arguments(name)
    modules = {following: import_module(following) for following in job.ahead}
    began = psutil.Process().create_time()
    with _heard() as said:
        main()
    _remember(job, name, time.time() - began, said)
    for following, module in modules.items():
        if not _went_on(job, following, module):
            return


def _went_on(job: jobs.JobArguments, name: str, module: Any) -> bool:
    from pyspark.sql import SparkSession

    began, refused = time.time(), None
    spark = SparkSession.active()
    spark.catalog.clearCache()
    with _heard() as said:
        try:
            module.main(spark=spark)
        except RefusedError as reason:
            refused = str(reason)
        except Exception as fault:  # whatever it is, the job's own task shall meet it
            first = (str(fault).splitlines() or [""])[0]
            jobs.say(f"{name} {job}: not done ahead: {type(fault).__name__}: {first}")
            return False
    _remember(job, name, time.time() - began, said, refused)
    return refused is None


def _remember(
    job: jobs.JobArguments, name: str, seconds: float, said: list[str], refused: str | None = None
) -> None:
    attempt = Lake(load_settings()).resume(job.network, job.run_id)
    attempt.did(name, seconds, said, refused)
    attempt.rest()


class _Memory(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@contextmanager
def _heard() -> Iterator[list[str]]:
    """What is said meanwhile."""
    memory = _Memory()
    jobs.LOG.addHandler(memory)
    try:
        yield memory.lines
    finally:
        jobs.LOG.removeHandler(memory)
