"""What every Spark job shares: its arguments, its log lines, its exit codes."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from permalake.errors import ConfigError, PermalakeError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from permalake.contracts import Table
    from permalake.lake import Attempt

_STAGED_AT_ONCE = 4
AHEAD = ("iota_analytics", "wormhole_enrich", "audit")
"""Jobs that may run in the submit of an earlier task."""
LOG = logging.getLogger("permalake")


@dataclass(frozen=True, slots=True)
class JobArguments:
    """The days of a network that a job builds, inclusive, and the run it belongs to."""

    network: str
    start: date
    end: date
    run_id: str
    fingerprint: str = ""
    force: bool = False
    ahead: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.network} {self.start}" + ("" if self.start == self.end else f"..{self.end}")


def arguments(job: str, argv: Sequence[str] | None = None) -> JobArguments:
    """Parse ``--network N --start D --end D --run-id R [--fingerprint F] [--force] [--ahead JOB ...]``."""
    parser = argparse.ArgumentParser(prog=job)
    parser.add_argument("--network", required=True)
    parser.add_argument("--start", required=True, type=date.fromisoformat)
    parser.add_argument("--end", required=True, type=date.fromisoformat)
    parser.add_argument("--run-id", required=True)
    parser.add_argument("--fingerprint", default="", help="of the input, for the publication's record")
    parser.add_argument("--force", action="store_true", help="ask live sources anew")
    parser.add_argument("--ahead", action="append", default=[], choices=AHEAD, help="to run after this one")
    given = parser.parse_args(argv)
    if given.end < given.start:
        raise ConfigError(f"--end {given.end} is before --start {given.start}")
    return JobArguments(**vars(given) | {"ahead": tuple(given.ahead)})


def say(line: str) -> None:
    """A line of progress in the job's log."""
    LOG.info(line)


def land(frame: DataFrame, folder: str, *, more: bool = False) -> DataFrame:
    """Write a frame down once, as Parquet, and go on from there; as ``more`` of what the folder holds."""
    frame.write.mode("append" if more else "overwrite").parquet(folder)
    return frame.sparkSession.read.schema(frame.schema).parquet(folder)


def stage(attempt: Attempt, frames: Mapping[str, DataFrame], contracts: Mapping[str, Table]) -> None:
    """Stage independent tables, a few at once: small ones cost more in commits than in data."""
    with ThreadPoolExecutor(_STAGED_AT_ONCE) as pool:
        done = [pool.submit(attempt.stage, frame, contracts[name]) for name, frame in frames.items()]
        for one in done:
            one.result()


def counted(attempt: Attempt, *tables: str) -> str:
    """How many rows some tables have as staged: ``81 messages, 2 milestones``."""
    counts = attempt.counts()
    return ", ".join(f"{sum(counts.get(table, {}).values())} {table}" for table in tables)


def run(main: Callable[[], None]) -> None:
    """Run a job as a process, and after it those that ``--ahead`` names: a :class:`PermalakeError` is one
    line and an exit code, nothing more."""
    logging.basicConfig(stream=sys.stdout, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    LOG.setLevel(logging.INFO)
    try:
        if "--ahead" in sys.argv:
            from permalake.pipeline import ahead

            ahead.run(Path(sys.argv[0]).stem, main)
        else:
            main()
    except PermalakeError as error:
        sys.stderr.write(f"permalake: {error}\n")
        sys.exit(error.exit_code)
