"""Runs steps: one or several in a Spark submit, or one in its task. Every try is a row of the step ledger."""

from __future__ import annotations

import argparse
import gc
import logging
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING, TypeVar

import psutil

from permalake.config import load_settings
from permalake.contracts.steps import Step, StepResult
from permalake.errors import ConfigError, InvalidInputError, PermalakeError, line_of
from permalake.lake import Attempt, PinnedAttempt
from permalake.lake.owner import end_with_owner
from permalake.pipeline.announcements import announce
from permalake.pipeline.domain import Domain, loaded
from permalake.pipeline.workspace import Workspace
from permalake.spark import sizes
from permalake.spark.installed_pyspark import prefer_installed
from permalake.spark.session import session
from permalake.spark.submit import is_local
from permalake.transparency.signing import sign_published

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
_OBJECTS_PER_COLLECTION = 50_000
LOG = logging.getLogger("permalake")


@dataclass(frozen=True, slots=True)
class StepArguments:
    """The days of a network that a run builds, inclusive, and the run they are built for.

    ``dag_run``: the run as Airflow knows it, where that differs. ``then``: steps to go on with in the same
    process while the days are small. ``stored``: see :class:`~permalake.pipeline.request.BuildRequest`.
    """

    network: str
    start: date
    end: date
    run_id: str
    fingerprint: str = ""
    force: bool = False
    stored: bool = False
    dag_run: str = ""
    then: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.network} {self.start}" + ("" if self.start == self.end else f"..{self.end}")


@dataclass
class StepContext:
    """The argument of a step's function: the workspace, the arguments, Spark, and a log that is kept."""

    work: Workspace
    arguments: StepArguments
    step: Step
    lines: list[str] = field(default_factory=list)
    given: SparkSession | None = None

    @property
    def spark(self) -> SparkSession:
        """The Spark session of this process, started when it is first asked for."""
        self.given = self.given or session(f"{self.step.name} {self.arguments}")
        return self.given

    def report(self, line: str) -> None:
        """Log a line of progress and keep it with the step's result."""
        self.lines.append(line)
        LOG.info(line)

    def sign(self) -> None:
        """Sign the published days that are not signed yet, where this machine has the key of the log.

        What is published stays published when that fails: the next publication signs it.
        """
        try:
            work = self.work
            entries = sign_published(work.settings, work.database, work.domain, work.network)
        except PermalakeError as error:
            self.report(f"not signed: {error}")
            return
        for entry in entries:
            self.report(f"signed {entry.network} {entry.date}: manifest {entry.manifest}")

    def announce(self) -> None:
        """Announce what this network has published since the last time, where a webhook is set."""
        work = self.work
        for line in announce(work.settings, work.database, work.network, self.arguments.run_id):
            self.report(line)

    @contextmanager
    def begin(self, prepare: Callable[[], T]) -> Iterator[tuple[Attempt, T]]:
        """Prepare the source, then begin the attempt of this order's days; give both to the block.

        Days that ``prepare`` marks stale count as built by the attempt, because it begins afterwards.
        """
        arguments = self.arguments
        source = prepare()
        with self.work.builds.begin(
            arguments.network,
            arguments.start,
            arguments.end,
            arguments.run_id,
            fingerprint=arguments.fingerprint,
        ) as attempt:
            yield attempt, source

    def resume(self) -> AbstractContextManager[Attempt]:
        """Resume the run's attempt; entering raises :class:`PermalakeError` when there is none."""
        return self.work.builds.resume(self.arguments.network, self.arguments.run_id)

    def pinned(self) -> AbstractContextManager[PinnedAttempt]:
        """Return the run's attempt as pinned; entering raises :class:`PermalakeError` when there is none."""
        return self.work.builds.pinned(self.arguments.network, self.arguments.run_id)


Body = Callable[[StepContext], StepResult]


def run_step(
    work: Workspace,
    arguments: StepArguments,
    step: Step,
    *,
    spark: SparkSession | None = None,
    submit: str | None = None,
) -> StepResult:
    """Run one step and record its try in the ledger; return the result, raise what the step raised."""
    body: Body = loaded(step.run)
    key = work.steps.start(
        arguments.network,
        arguments.run_id,
        step.name,
        (arguments.start, arguments.end),
        dag_run=arguments.dag_run,
        submit=submit,
    )
    began = psutil.Process().create_time() if submit == step.name else time.time()
    context = StepContext(work, arguments, step, given=spark)
    result = StepResult("failed")
    failure: Exception | None = None
    try:
        result = body(context)
    except InvalidInputError as error:
        failure, result = error, StepResult("invalid", reason=str(error), retryable=False)
    except PermalakeError as error:
        failure, result = error, StepResult("failed", reason=str(error), retryable=error.retryable)
    except Exception as error:  # noqa: BLE001 - recorded, then raised below
        failure, result = error, StepResult("failed", reason=line_of(error))
    finally:
        facts = _facts(work, arguments, step, result)
        result = replace(facts.result, seconds=time.time() - began, log=tuple(context.lines))
        work.steps.finish(key, result, attempt_id=facts.attempt_id, inputs=facts.inputs)
    if failure is not None:
        raise failure
    return result


@dataclass(frozen=True)
class _Facts:
    result: StepResult
    attempt_id: str | None = None
    inputs: str = ""


def _facts(work: Workspace, arguments: StepArguments, step: Step, result: StepResult) -> _Facts:
    """Return a step's outcome with what the lake knows of it: rows staged so far and quarantined input."""
    if result.served is not None:
        return _Facts(result)
    staged = work.builds.staged(arguments.network, arguments.run_id)
    if result.days is None and step.job is not None:
        result = replace(
            result, quarantined=work.reader.quarantined(arguments.network, arguments.start, arguments.end)
        )
        if staged is not None:
            rows = {table: sum(per_day.values()) for table, per_day in sorted(staged.counts().items())}
            result = replace(result, rows=rows)
    if staged is None:
        return _Facts(result)
    return _Facts(result, staged.id, work.staged_state(staged, step))


class Job:
    """The Spark job ``spark/{name}.py``: runs its step, then those that ``--then`` names.

    ``domain_of`` gives the domain of a network.
    """

    def __init__(self, name: str, domain_of: Callable[[str], Domain]) -> None:
        self.name = name
        self._domain_of = domain_of

    def __call__(self, argv: Sequence[str] | None = None, spark: SparkSession | None = None) -> None:
        """Run the job's step; raises what it raised. A later step that fails is left to its own task."""
        arguments = self._arguments(argv)
        domain = self._domain_of(arguments.network)
        work = Workspace.open(load_settings(), domain, arguments.network)
        first = next(step for step in domain.steps if step.job == self.name)
        result = run_step(work, arguments, first, spark=spark, submit=first.name)
        if result.state == "invalid":
            raise InvalidInputError(result.failure)
        for step in map(domain.step, arguments.then):
            if not (step.light or sizes.should_chain(result.rows, is_local=is_local())):
                LOG.info("%s %s: large, so %s has a submit of its own", self.name, arguments, step.name)
                return
            following = self._go_on(work, arguments, step, first)
            if following is None or following.state != "done":
                return
            result = following

    def _go_on(self, work: Workspace, arguments: StepArguments, step: Step, first: Step) -> StepResult | None:
        from pyspark.sql import SparkSession

        # None where no step has needed Spark so far: the first one that does starts it.
        spark = SparkSession.getActiveSession()
        if spark is not None:
            spark.catalog.clearCache()
        try:
            return run_step(work, arguments, step, spark=spark, submit=first.name)
        except Exception as error:  # noqa: BLE001 - the step's own task runs it again and reports it
            LOG.info("%s %s: %s", step.name, arguments, line_of(error))
            return None

    def _arguments(self, argv: Sequence[str] | None) -> StepArguments:
        parser = argparse.ArgumentParser(prog=self.name)
        parser.add_argument("--network", required=True)
        parser.add_argument("--start", required=True, type=date.fromisoformat)
        parser.add_argument("--end", required=True, type=date.fromisoformat)
        parser.add_argument("--run-id", required=True)
        parser.add_argument("--dag-run", default="", help="the run as Airflow knows it")
        parser.add_argument("--fingerprint", default="", help="of the input, for the publication's record")
        parser.add_argument("--force", action="store_true", help="ask live sources anew")
        parser.add_argument(
            "--stored", action="store_true", help="ask no service for prices and chain details"
        )
        parser.add_argument(
            "--then", action="append", default=[], metavar="STEP", help="go on with this step"
        )
        given = parser.parse_args(argv)
        if given.end < given.start:
            raise ConfigError(f"--end {given.end} is before --start {given.start}")
        return StepArguments(**vars(given) | {"then": tuple(given.then)})

    def process(self) -> None:
        """Run as a process: a :class:`PermalakeError` is one line and an exit code."""
        as_process(self)


def as_process(job: Callable[[], None]) -> None:
    """Run a job as a whole process: log to standard output, end an error with its line and exit code."""
    prefer_installed()
    # What a job imports lives as long as it: to look for garbage among it took half a second.
    gc.set_threshold(_OBJECTS_PER_COLLECTION)
    logging.basicConfig(stream=sys.stdout, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    LOG.setLevel(logging.INFO)
    end_with_owner()
    try:
        job()
    except PermalakeError as error:
        sys.stderr.write(f"permalake: {error}\n")
        sys.exit(error.exit_code)


def counted(attempt: Attempt, *tables: str) -> str:
    """Return how many rows some tables have as staged: ``81 messages, 2 milestones``."""
    counts = attempt.staged.counts()
    return ", ".join(f"{sum(counts.get(table, {}).values())} {table}" for table in tables)
