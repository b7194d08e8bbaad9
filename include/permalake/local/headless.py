"""One DAG run in this process, without scheduler or web server.

:mod:`permalake.local.run` starts it in the environment of :mod:`permalake.local.airflow_env`; what
Airflow and Spark print goes to the log file that is this process' output.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from permalake.domains import named
from permalake.lake.leases import OWNER, this_process
from permalake.paths import DAGS
from permalake.pipeline.domain import Domain


def run(domain: Domain, conf: dict[str, Any]) -> bool:
    """Run the DAG of ``domain`` with ``conf`` through to its end; return whether it succeeded."""
    from airflow.dag_processing.dagbag import DagBag
    from airflow.sdk import BaseSensorOperator, DagRunState
    from airflow.sdk.listener import get_listener_manager

    from permalake.local.execution_api import serve_one_version
    from permalake.local.task_logs import TaskLogs

    bag = DagBag(str(DAGS / f"{domain.dag_id}.py"))
    for file, fault in bag.import_errors.items():
        sys.stdout.write(f"{file}: {fault}\n")
        return False
    dag = bag.dags[domain.dag_id]
    dag.deadline = None  # nobody waits for an alert at a terminal, and Airflow cannot test a DAG that has one
    for task in dag.tasks:
        task.retries = 0  # whoever waits at a terminal wants the reason now, not after three back-offs
        if isinstance(task, BaseSensorOperator):
            task.timeout = 0
    logs = TaskLogs(Path(os.environ["AIRFLOW__LOGGING__BASE_LOG_FOLDER"]))
    get_listener_manager().add_listener(logs)  # type: ignore[no-untyped-call]
    serve_one_version()
    return bool(dag.test(run_conf=conf).state == DagRunState.SUCCESS)


def _end_with_parent() -> None:
    """End this run and its Spark job when the command that started it is gone (killed, not just stopped)."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os.killpg(os.getpgrp(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    _end_with_parent()
    os.environ[OWNER] = this_process()
    sys.exit(0 if run(named(sys.argv[1]), json.loads(sys.argv[2])) else 1)
