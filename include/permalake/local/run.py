"""``permalake run``: the steps of a day or a range of days, one after the other, in this process.

Each step is executed as Airflow's tasks do it (:mod:`permalake.pipeline.execution`): most in a Spark submit,
the others here. The ledger of steps shows how far it is. What Spark and the steps print goes to a log file.
"""

from __future__ import annotations

import logging
import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

from permalake.config import Settings, load_settings, used
from permalake.contracts.steps import AFTER_PUBLICATION, SERVE, WAIT, Step
from permalake.domains import domain_of
from permalake.errors import PermalakeError, error_of
from permalake.lake.leases import format_range
from permalake.lake.owner import owning
from permalake.local.report import RunReport
from permalake.local.store_connections import store_settings
from permalake.paths import HOME
from permalake.pipeline import alerts
from permalake.pipeline.execution import StepOutcome, execute, failed
from permalake.pipeline.request import BuildRequest, run_name
from permalake.pipeline.runs import is_unchanged, startable
from permalake.pipeline.stale_days import mark_continued, oldest_stale
from permalake.pipeline.workspace import Workspace
from permalake.sanitize import LONGEST_MESSAGE, shown
from permalake.spark import submit
from permalake.spark.submit import Submission, SubmitEnd
from permalake.stores.serve import waiting

LOGS = HOME / "logs"


def run_range(
    settings: Settings,
    network: str,
    start: date,
    end: date,
    *,
    only: str | None = None,
    force: bool = False,
    stored: bool = False,
    config: str | os.PathLike[str] | None = None,
) -> int:
    """Build days ``start`` to ``end`` (inclusive) of ``network``; the exit code, 0.

    Prints one line per step. A run that fails is a :class:`PermalakeError` with the step, its reason and the
    log file. Days that are published and unchanged are not built again unless ``force``.

    The oldest stale days of the network are built first, so that these go on from what those have become.
    When that fails it is said, and these are built all the same.
    """
    work = Workspace.open(settings, domain_of(network), network)
    with used(config), owning(), interruptible():
        if only is None:
            mark_continued(work)
        if only is None and (before := oldest_stale(work.reader, network, beside=(start, end))):
            RunReport(f"{network} {format_range(*before)}").say("stale, so they are built again first")
            try:
                _build(work, request_of(work, *before))
            except PermalakeError as error:
                sys.stderr.write(f"permalake: {shown(error, LONGEST_MESSAGE)}\n")
        return _build(work, request_of(work, start, end, only=only, force=force, stored=stored))


def request_of(
    work: Workspace,
    start: date,
    end: date,
    *,
    only: str | None = None,
    force: bool = False,
    stored: bool = False,
) -> BuildRequest:
    """Return the request of a new run from the command line."""
    moment = f"cli-{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"
    run_id = f"{run_name(work.network, start, end)}__{moment}"
    return BuildRequest(work.domain, work.network, start, end, run_id, only, force, stored, dag_run=run_id)


def title(request: BuildRequest) -> str:
    """Return how a run's lines name it: DAG, network and days."""
    return f"{request.domain.dag_id} {request.title}"


def has_nothing_to_do(work: Workspace, request: BuildRequest) -> bool:
    """Return whether the days are published and unchanged, and no step has earlier days to catch up with."""
    stores = work.domain.configured_stores(work.settings)
    if waiting(work.settings, work.network, stores) or work.carries.waiting(work.network) is not None:
        return False
    return is_unchanged(work, request)


def log_file(request: BuildRequest) -> Path:
    """Return where the output of a run goes; its folder is there."""
    folder = LOGS / request.domain.dag_id
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{request.run_id}.log"


def _build(work: Workspace, request: BuildRequest) -> int:
    report = RunReport(title(request))
    if has_nothing_to_do(work, request):
        report.say("published and unchanged; --force builds it again")
        return 0
    began = time.monotonic()
    run = Run(work, request, report)
    with _logged(run.log):
        run.build()
    report.close(time.monotonic() - began, unchanged=run.is_unchanged)
    return 0


class Run:
    """A run of the steps of one request, which writes its lines to a report and its output to a log file."""

    def __init__(self, work: Workspace, request: BuildRequest, report: RunReport) -> None:
        self.log = log_file(request)
        self.is_unchanged = False
        self._work = work
        self._request = request
        self._report = report
        self._stores = work.domain.configured_stores(work.settings)
        self._connections: dict[str, str] | None = None

    def build(self) -> None:
        """Execute the steps in order, each once.

        Whoever waits at a terminal wants the reason now, not after three back-offs.

        Raises:
            PermalakeError: A step failed; its exit code says whether another try may succeed.
        """
        try:
            self._request = startable(self._work, self._request)
            for step in self._work.domain.steps:
                if self._is_left(step):
                    continue
                outcome = self._execute(step)
                self._request = outcome.request
                self._watch()
                self._show(step, outcome)
        except KeyboardInterrupt:
            self._work.steps.interrupt(self._request.network, self._request.dag_run)
            raise
        finally:
            self._work.builds.release(self._request.network, self._request.run_id)

    def _is_left(self, step: Step) -> bool:
        if self.is_unchanged:
            return step.name not in AFTER_PUBLICATION
        return self._work.domain.comes_before(step, self._request.only)

    def _execute(self, step: Step) -> StepOutcome:
        if step.name not in {WAIT, SERVE} or not self._stores:
            return execute(self._work, self._request, step, self._submit, self._report.say)
        try:
            with self._connected() as work:
                return execute(work, self._request, step, self._submit, self._report.say)
        except PermalakeError as error:
            return StepOutcome(self._request, failed(error))

    @contextmanager
    def _connected(self) -> Iterator[Workspace]:
        """Add to the settings what Airflow's connections say of the stores."""
        if self._connections is None:
            self._connections = store_settings(self._work.domain, self.log)
        os.environ.update(self._connections)
        try:
            yield replace(self._work, settings=load_settings())
        finally:
            for name in self._connections:
                os.environ.pop(name, None)

    def _submit(self, submission: Submission) -> SubmitEnd:
        return submit.run(submission, self.log, self._watch)

    def _watch(self) -> None:
        """Show how far the steps are; a catalog that is away for a moment does not end the run."""
        with suppress(PermalakeError):
            run = self._request.dag_run
            rows = self._work.steps.of_run(run, self._work.network)
            # A run that goes on with another one's staging leaves that one's steps alone.
            self._report.follow(row for row in rows if row.dag_run == run)

    def _show(self, step: Step, outcome: StepOutcome) -> None:
        result = outcome.result
        if outcome.is_failure:
            alerts.send(alerts.failed(self._request, step, result))
            code = 1 if result.retryable else 2
            raise error_of(code, f"{self._report.failure(step.name, result)}; the log is {self.log}")
        if result.state == "skipped" and step.name not in AFTER_PUBLICATION:
            self.is_unchanged = True
        elif result.state == "skipped" and step.name != WAIT:
            self._report.leave_out(step.name, result.reason or "")


@contextmanager
def _logged(file: Path) -> Iterator[None]:
    """Let what this process logs go to a file, for the time of the block."""
    handler = logging.FileHandler(file, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", datefmt="%H:%M:%S"))
    root, ours = logging.getLogger(), logging.getLogger("permalake")
    before = ours.level
    root.addHandler(handler)
    ours.setLevel(logging.INFO)
    try:
        yield
    finally:
        ours.setLevel(before)
        root.removeHandler(handler)
        handler.close()


@contextmanager
def interruptible() -> Iterator[None]:
    """End the block on Ctrl-C with one line, and on SIGTERM as on Ctrl-C."""
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, signal.default_int_handler) if is_main else None
    try:
        yield
    except KeyboardInterrupt:
        raise PermalakeError("interrupted") from None
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)
