"""Runs a DAG for a day or a range of days from the command line, and shows how far it is."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from permalake.config import Settings
from permalake.domains import domain_of
from permalake.errors import PermalakeError, error_of
from permalake.hostile_text import LONGEST_MESSAGE, shown
from permalake.lake.leases import spell
from permalake.local import airflow_metadata, run_history
from permalake.local.airflow_env import AIRFLOW_HOME, airflow_environment
from permalake.local.report import RunReport
from permalake.paths import HOME
from permalake.pipeline.progress import VARIABLE
from permalake.pipeline.request import RUN_ID, BuildRequest
from permalake.pipeline.runs import is_unchanged
from permalake.pipeline.stale_days import mark_continued, oldest_stale
from permalake.pipeline.workspace import Workspace
from permalake.stores.serve import waiting

LOGS = HOME / "logs"
_GRACE = 15


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
    """Build days ``start`` to ``end`` (inclusive) of ``network`` through its DAG; the exit code, 0.

    Prints one line per step. What Airflow and Spark print goes to a log file. A run that fails is a
    :class:`PermalakeError` with the step, its reason and that file. Days that are published and unchanged
    are not built again unless ``force``.

    The oldest stale days of the network are built first, so that these go on from what those have become.
    When that fails it is said, and these are built all the same.
    """
    work = Workspace.open(settings, domain_of(network), network)
    if only is None:
        mark_continued(work)
    if only is None and (before := oldest_stale(work.reader, network, beside=(start, end))):
        RunReport(f"{network} {spell(*before)}").say("stale, so they are built again first")
        try:
            _run(work, *before, config=config)
        except PermalakeError as error:
            sys.stderr.write(f"permalake: {shown(error, LONGEST_MESSAGE)}\n")
    return _run(work, start, end, only=only, force=force, stored=stored, config=config)


def _run(
    work: Workspace,
    start: date,
    end: date,
    *,
    only: str | None = None,
    force: bool = False,
    stored: bool = False,
    config: str | os.PathLike[str] | None = None,
) -> int:
    network, domain = work.network, work.domain
    stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"
    request = BuildRequest(domain, network, start, end, f"cli-{stamp}", only, force, stored)
    report = RunReport(f"{domain.dag_id} {network} {request.days}")
    stores = domain.configured_stores(work.settings)
    idle = not waiting(work.settings, network, stores) and work.carries.waiting(network) is None
    if idle and is_unchanged(work, request):
        report.say("published and unchanged; --force builds it again")
        return 0
    run = Run(request, _log_file(request, stamp), config)
    began = time.monotonic()
    report.say("through Airflow")
    try:
        for event in run.events():
            report.show(event)
    finally:
        if not run.succeeded:
            work.builds.release(request.run_id)
    if run.succeeded and not report.failure:
        report.close(time.monotonic() - began)
        return 0
    reason = report.failure or "the run did not get through"
    raise error_of(report.exit_code, f"{report.title}: {reason}; the log is {run.log}")


class Run:
    """A DAG run in a process group of its own, on a private copy of Airflow's metadata database."""

    def __init__(self, request: BuildRequest, log: Path, config: str | os.PathLike[str] | None) -> None:
        self.request = request
        self.log = log
        self.config = config
        self.succeeded = False

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield what happens, as it happens; end with the run."""
        place = AIRFLOW_HOME / "runs" / self.request.run_id
        database = airflow_metadata.copy_to(place / "airflow.db")
        environment = airflow_environment(database=database, config=self.config, logs=place / "logs")
        reader, writer = os.pipe()
        try:
            with self.log.open("w+b") as log, os.fdopen(reader, "rb") as pipe:
                process = subprocess.Popen(
                    [
                        sys.executable,
                        "-m",
                        "permalake.local.headless",
                        self.request.domain.name,
                        self._conf(),
                    ],
                    env={**environment, VARIABLE: str(writer)},
                    pass_fds=[writer],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
                os.close(writer)
                try:
                    yield from map(json.loads, pipe)
                    self.succeeded = process.wait() == 0
                finally:
                    if not self.succeeded:
                        _end(process)
        finally:
            self._record(database, place / "logs")
            shutil.rmtree(place, ignore_errors=True)

    def _record(self, database: Path, logs: Path) -> None:
        """Show the run in the UI; one that cannot be shown is built all the same."""
        history = run_history.folder()
        try:
            if history:
                run_history.record(database, logs, history)
        except (OSError, sqlite3.Error) as error:
            with self.log.open("a", encoding="utf-8") as log:
                log.write(f"permalake: the run is not shown in Airflow's UI: {error}\n")

    def _conf(self) -> str:
        request = self.request
        return json.dumps(
            {
                RUN_ID: request.run_id,
                "network": request.network,
                "start": str(request.start),
                "end": str(request.end),
                "only": request.only,
                "force": request.force,
                "stored": request.stored,
            }
        )


def _log_file(request: BuildRequest, stamp: str) -> Path:
    folder = LOGS / request.domain.dag_id
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{request.network}_{request.days}_{stamp}.log"


def _end(process: subprocess.Popen[bytes]) -> None:
    """End what is left of the run: the process, its Spark submit and that one's workers."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
        except ProcessLookupError:
            return
        try:
            process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            continue
