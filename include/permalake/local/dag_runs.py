"""Runs of the daily DAGs through Airflow without its scheduler, in the metadata database of ``make up``.

Airflow's own executor runs the tasks, which ask an API server as always: that of ``make up``, or one that
ends with the runs. Each DAG is paused meanwhile, so that no scheduler takes the tasks; a new DAG is paused
anyway.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from permalake.config import used
from permalake.domains import named
from permalake.errors import PermalakeError
from permalake.lake.owner import end_with_owner, owning
from permalake.local import airflow_server
from permalake.local.report import RunReport
from permalake.local.run import log_file, title
from permalake.paths import DAGS
from permalake.pipeline.request import RUN_ID, BuildRequest
from permalake.pipeline.workspace import Workspace
from permalake.spark.submit import end_group

_LOOK_SECONDS = 0.5
_END_SECONDS = 60
"""The time that Airflow may take to end its workers."""
Run = tuple[Workspace, BuildRequest]


def run_dags(runs: Sequence[Run], config: str | os.PathLike[str] | None = None) -> None:
    """Run the DAG of each request, one after the other, and print a line per step.

    Raises:
        PermalakeError: A run failed; the rest is not begun. It names the log of what Airflow and Spark print.
    """
    log = log_file(runs[0][1])
    asked = json.dumps([[request.domain.name, _conf(request)] for _, request in runs])
    with used(config), owning(), log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "permalake.local.dag_runs", asked],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            bufsize=0,  # What a buffer held would not be seen by select.
            stderr=output,
            start_new_session=True,
        )
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        code = None
        try:
            for run in runs:
                _follow(process, process.stdout, run, log)
            with suppress(subprocess.TimeoutExpired):  # What was asked for is done.
                code = process.wait(_END_SECONDS)
        finally:
            if code != 0:
                end_group(process)


def _conf(request: BuildRequest) -> dict[str, Any]:
    return {
        RUN_ID: request.run_id,
        "network": request.network,
        "start": str(request.start),
        "end": str(request.end),
        "only": request.only,
        "force": request.force,
        "stored": request.stored,
    }


def _follow(process: subprocess.Popen[bytes], answers: IO[bytes], run: Run, log: Path) -> None:
    """Show how far a run is until the process answers in which state it ended."""
    work, request = run
    report = RunReport(title(request))
    report.say("through Airflow")
    began = time.monotonic()
    state: bytes | None = None
    while state is None:
        has_ended = process.poll() is not None
        if select.select([answers], [], [], _LOOK_SECONDS)[0]:
            state = answers.readline()
        elif has_ended:  # Killed: its workers, which live on, hold the pipe open.
            state = b""
        with suppress(PermalakeError):
            report.follow(work.steps.of_run(request.run_id, request.network))
    if state.strip() != b"success":
        work.builds.release(request.network, request.run_id)
        reason = "the run did not get through"
        rows = work.steps.of_run(request.run_id, request.network)
        failures = [row for row in rows if row.result.state != "done"]
        if failures:
            reason = f"{failures[-1].key.step}: {failures[-1].result.failure}"
        raise PermalakeError(f"{report.title}: {reason}; the log is {log}")
    report.close(time.monotonic() - began, unchanged=False)


def main(asked: list[tuple[str, dict[str, Any]]]) -> Iterator[str]:
    """Run DAGs in this process, each by its domain and the run's conf; yield the state in which each ends."""
    end_with_owner()
    with airflow_server.execution_api() as environment:
        os.environ.update(environment)
        for domain, conf in asked:
            state = _run(named(domain).dag_id, conf)
            yield state
            if state != "success":
                return


def _run(dag_id: str, conf: dict[str, Any]) -> str:
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(str(DAGS / f"{dag_id}.py"))
    for file, fault in bag.import_errors.items():
        sys.stdout.write(f"{file}: {fault}\n")
        return "failed"
    dag = bag.dags[dag_id]
    dag.deadline = None  # Airflow cannot test a DAG that has a deadline.
    dag.has_on_failure_callback = False  # It tells of runs that took too long; nothing ends this one.
    for task in dag.tasks:
        task.retries = 0  # Whoever waits at a terminal wants the reason now, not after three back-offs.
    with _paused(dag_id):
        return str(dag.test(run_conf=conf, use_executor=True).state)


@contextmanager
def _paused(dag_id: str) -> Iterator[None]:
    """Hold the DAG off from a scheduler that may run beside, for the time of the block."""
    from airflow.models.dag import DagModel
    from airflow.utils.session import create_session

    def pause(value: bool) -> bool:
        with create_session() as session:
            model = session.get(DagModel, dag_id)
            before = model is None or bool(model.is_paused)
            if model is not None:
                model.is_paused = value
            return before

    was_paused = pause(True)
    try:
        yield
    finally:
        pause(was_paused)


if __name__ == "__main__":
    # What Airflow and the tasks print goes where errors go; standard output says how each run ended.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    for ended in main(json.loads(sys.argv[1])):
        answers.write(f"{ended}\n")
