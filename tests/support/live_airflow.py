"""A whole Airflow of its own (server, scheduler, DAG processor, triggerer) and its REST API."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import httpx
import psutil

from permalake import paths
from permalake.local.services.daemon import free_port
from permalake.paths import ROOT

WAIT = float(os.environ.get("PERMALAKE_TEST_PATIENCE", "900"))


class LiveAirflow:
    """Started by ``make up``'s own module on a free port, with its home in ``folder``."""

    def __init__(self, folder: Path, config: Path, **environment: str) -> None:
        self.home = folder / "home"
        if not self.home.exists():
            self.home.mkdir()
            (self.home / "jars").symlink_to(paths.JARS)
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")},
            "PERMALAKE_HOME": str(self.home),
            "PERMALAKE_CONFIG": str(config),
            "PERMALAKE_PORT": str(free_port()),
            "PERMALAKE_SPARK_MASTER": "local[2]",
            "PERMALAKE_SPARK_DRIVER_MEMORY": "1g",
            "AIRFLOW__CORE__PARALLELISM": "3",
            "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
            # Who was killed is missed after this long; the default is five minutes.
            "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "15",
            "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "2",
            # Nobody changes a DAG here; to parse them all again and again takes a tenth of a core.
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "600",
            **environment,
        }
        self.address = ""
        self._client = httpx.Client(timeout=180)

    def up(self) -> None:
        """Start what does not run, and log in."""
        said = self._server("up")
        facts = dict(line.split(maxsplit=1) for line in said.splitlines() if len(line.split()) == 2)
        self.address = facts["Airflow"]
        self.log_in(facts["login"], facts["password"])

    def log_in(self, user: str, password: str) -> None:
        login = {"username": user, "password": password}
        token = self._client.post(f"{self.address}/auth/token", json=login).raise_for_status().json()
        self._client.headers["Authorization"] = f"Bearer {token['access_token']}"

    def down(self) -> None:
        self._server("down")

    def _server(self, verb: str) -> str:
        command = [sys.executable, "-m", "permalake.local.airflow_server", verb]
        done = subprocess.run(
            command, env=self.environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def kill_scheduler(self) -> None:
        """SIGKILL, with all that it started."""
        state = json.loads((self.home / "airflow" / "server.json").read_text())
        parent = psutil.Process(int(state["parts"]["scheduler"]["group"]))
        victims = [*parent.children(recursive=True), parent]
        for process in victims:
            process.kill()
        psutil.wait_procs(victims, timeout=120)

    def scheduler_waits_for_api(self) -> bool:
        """Whether the scheduler of the last :meth:`up` began after its API server answered."""
        home = self.home / "airflow"
        scheduler = psutil.Process(
            json.loads((home / "server.json").read_text())["parts"]["scheduler"]["group"]
        )
        lines = (home / "logs" / "api-server.log").read_text().splitlines()
        answering = [line.split()[0] for line in lines if "Application startup complete" in line][-1]
        return datetime.fromisoformat(answering).timestamp() < scheduler.create_time()

    def page(self, path: str, *, known: bool = True) -> httpx.Response:
        return (self._client if known else httpx.Client(timeout=180)).get(f"{self.address}{path}")

    def call(self, verb: str, path: str, **body):
        answer = self._client.request(verb, f"{self.address}/api/v2{path}", json=body or None)
        assert answer.is_success, f"{verb} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    def runs(self, dag: str = "iota_daily") -> dict[str, dict]:
        listed = self.call("GET", f"/dags/{dag}/dagRuns?limit=100")["dag_runs"]
        return {run["dag_run_id"]: run for run in listed}

    def trigger(self, run_id: str, dag: str = "iota_daily", **conf) -> None:
        self.call("POST", f"/dags/{dag}/dagRuns", dag_run_id=run_id, logical_date=None, conf=conf)

    def tasks(self, run_id: str, dag: str = "iota_daily") -> dict[str, str]:
        listed = self.call("GET", f"/dags/{dag}/dagRuns/{run_id}/taskInstances")["task_instances"]
        return {task["task_id"]: task["state"] for task in listed}

    def log(self, run_id: str, task: str) -> str:
        """Of the last try."""
        instance = f"/dags/iota_daily/dagRuns/{run_id}/taskInstances/{task}"
        last = self.call("GET", instance)["try_number"]
        return json.dumps(self.call("GET", f"{instance}/logs/{last}?full_content=true"), ensure_ascii=False)

    def xcom(self, run_id: str, task: str, dag: str = "iota_daily"):
        path = f"/dags/{dag}/dagRuns/{run_id}/taskInstances/{task}/xcomEntries/return_value?deserialize=true"
        return self.call("GET", path)["value"]

    def until(self, condition, what: str, seconds: float = WAIT):
        """What ``condition`` returns once it is true."""
        give_up = time.monotonic() + seconds
        while time.monotonic() < give_up:
            if found := condition():
                return found
            time.sleep(2)  # Each look costs the server a twentieth of a second.
        raise AssertionError(f"{what}: not within {seconds:.0f} s; runs: {self.told()}")

    def told(self) -> str:
        """How the runs of days stand: state, note, and state and tries of each task."""
        return "\n".join(
            f"{run_id}: {run['state']}, {run['note']}; {self._tries(run_id, dag)}"
            for dag in ("iota_daily", "wormhole_daily")
            for run_id, run in self.runs(dag).items()
        )

    def _tries(self, run_id: str, dag: str) -> str:
        listed = self.call("GET", f"/dags/{dag}/dagRuns/{run_id}/taskInstances")["task_instances"]
        return ", ".join(f"{task['task_id']} {task['state']} in try {task['try_number']}" for task in listed)
