"""``make up`` and ``make down``: Airflow on this machine, in the background."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import psutil

from permalake.errors import PermalakeError
from permalake.local import airflow_metadata, airflow_secrets, config_of_make
from permalake.local.airflow_env import AIRFLOW_HOME, airflow_environment
from permalake.local.services.daemon import alone, free, free_port
from permalake.paths import DAGS, ROOT
from permalake.process_start import start_of
from permalake.spark.submit import bin_folder

PARTS = ("api-server", "dag-processor", "triggerer", "scheduler")
"""In the order in which they start."""
STATE = AIRFLOW_HOME / "server.json"
LOGS = AIRFLOW_HOME / "logs"
_LAST_PORT = 65_533
"""The two after it serve logs."""
_READY_SECONDS = 600
_GRACE_SECONDS = 20


def port() -> int:
    """``PERMALAKE_PORT``, or Airflow's own 8080."""
    value = os.environ.get("PERMALAKE_PORT", "8080")
    if not (value.isdecimal() and 1 <= int(value) <= _LAST_PORT):
        raise PermalakeError(f"PERMALAKE_PORT {value}: not a port; use a number, for example 8081")
    return int(value)


def server_environment(address: str, number: int) -> dict[str, str]:
    """Return the environment that all parts of the server share."""
    database = airflow_metadata.database(is_in_use=bool(_running()))
    variables = {
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(number),
        "AIRFLOW__API__BASE_URL": address,
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{address}/execution/",
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(number + 1),
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(number + 2),
    }
    return {
        **airflow_environment(database=database, config=config_of_make()),
        **airflow_secrets.environment(AIRFLOW_HOME),
        **variables,
    }


def up() -> str:
    """Start every part that is not running, wait until all are well and the DAGs are listed; the address.

    Another one that starts them meanwhile is waited for.
    """
    with alone(AIRFLOW_HOME):
        return _up()


def _up() -> str:
    number = port()
    address = f"http://localhost:{number}"
    running = _running()
    if set(running) == set(PARTS):
        return str(json.loads(STATE.read_text())["address"])
    down()
    if not free(number):
        raise PermalakeError(f"port {number} is taken; choose another with PERMALAKE_PORT")
    environment = server_environment(address, number)
    state: dict[str, dict[str, int | str]] = {}
    processes: dict[str, subprocess.Popen[bytes]] = {}
    for part in PARTS:
        if part == "scheduler":
            # It goes on at once with what it finds; a task that no API server answers fails and loses a try.
            try:
                _wait_until_answering(lambda: processes["api-server"].poll() is None, address)
            except PermalakeError:
                down()
                raise
        process = processes[part] = _start(part, environment, start_new_session=True)
        state[part] = {"group": process.pid, "start": start_of(psutil.Process(process.pid))}
        draft = STATE.with_suffix(".new")
        draft.write_text(json.dumps({"address": address, "parts": state}))
        draft.replace(STATE)
    _wait_until_well(address)
    return address


@contextmanager
def execution_api() -> Iterator[dict[str, str]]:
    """Give the environment of a process that runs tasks: beside :func:`up`, or with an API server of its own.

    That server belongs to the caller's process group, and ends with the block.
    """
    if "api-server" in _running():
        address = str(json.loads(STATE.read_text())["address"])
        _wait_until_answering(lambda: "api-server" in _running(), address)
        yield server_environment(address, int(address.rpartition(":")[2]))
        return
    number = free_port()
    address = f"http://localhost:{number}"
    environment = server_environment(address, number)
    server = _start("api-server", environment, "--apps", "execution")
    try:
        _wait_until_answering(lambda: server.poll() is None, address)
        yield environment
    finally:
        server.terminate()
        server.wait()


def _start(
    part: str, environment: dict[str, str], *options: str, start_new_session: bool = False
) -> subprocess.Popen[bytes]:
    LOGS.mkdir(parents=True, exist_ok=True)
    with (LOGS / f"{part}.log").open("ab") as log:
        return subprocess.Popen(
            [str(bin_folder() / "airflow"), part, *options],
            env=environment,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=start_new_session,
        )


def _wait_until_answering(lives: Callable[[], bool], address: str) -> None:
    """Wait until the API server answers tasks.

    Raises:
        PermalakeError: if it ends or time is up.
    """
    url = f"{address}/execution/health"
    give_up = time.monotonic() + _READY_SECONDS
    while lives() and time.monotonic() < give_up:
        with suppress(httpx.HTTPError):
            if httpx.get(url, timeout=5).is_success:
                return
        time.sleep(0.3)
    raise PermalakeError(f"Airflow's API server does not answer; its log is {LOGS / 'api-server.log'}")


def down() -> list[str]:
    """Stop what :func:`up` started, each part with all it has started; the names of what ran.

    A task and its Spark job have a process group of their own, so that they are ended by their ids.
    """
    running = _running()
    processes = [process for group in running.values() for process in _with_descendants(group)]
    for group in running.values():
        _signal(group, signal.SIGTERM)
    for process in processes:
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            if os.getpgid(process.pid) not in running.values():
                process.terminate()
    give_up = time.monotonic() + _GRACE_SECONDS
    while any(map(_lives, processes)) and time.monotonic() < give_up:
        time.sleep(0.2)
    for group in running.values():
        _signal(group, signal.SIGKILL)
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    STATE.unlink(missing_ok=True)
    return list(running)


def _running() -> dict[str, int]:
    """Process groups that :func:`up` started and that are still the same processes."""
    if not STATE.exists():
        return {}
    running = {}
    for part, recorded in json.loads(STATE.read_text())["parts"].items():
        try:
            process = psutil.Process(int(recorded["group"]))
            if start_of(process) == recorded.get("start") and process.status() != psutil.STATUS_ZOMBIE:
                running[part] = process.pid
        except psutil.NoSuchProcess:
            continue
    return running


def _with_descendants(number: int) -> list[psutil.Process]:
    try:
        process = psutil.Process(number)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _signal(group: int, sign: int) -> None:
    try:
        os.killpg(group, sign)
    except ProcessLookupError:
        return


def _wait_until_well(address: str) -> None:
    """Wait until every part reports a heartbeat and every DAG file is read.

    Raises:
        PermalakeError: if a part ends or time is up.
    """
    give_up = time.monotonic() + _READY_SECONDS
    while time.monotonic() < give_up:
        if gone := set(PARTS) - set(_running()):
            part = sorted(gone)[0]
            down()
            raise PermalakeError(f"{part} ended at once; its log is {LOGS / part}.log")
        if _well(address) and _has_read_dags(address):
            return
        time.sleep(1)
    down()
    raise PermalakeError(f"Airflow was not ready within {_READY_SECONDS} s; the logs are in {LOGS}")


def _well(address: str) -> bool:
    try:
        answer = httpx.get(f"{address}/api/v2/monitor/health", timeout=5)
        health = answer.raise_for_status().json()
    except (httpx.HTTPError, ValueError):
        return False
    return all(part.get("status") == "healthy" for part in health.values() if part.get("status") is not None)


def _has_read_dags(address: str) -> bool:
    """Return whether every file of the DAG folder shows up as a DAG or as an import error.

    True as well where users are not Airflow's simple ones, so that nothing can be asked.
    """
    login = {"username": airflow_secrets.USER, "password": airflow_secrets.password(AIRFLOW_HOME)}
    try:
        with httpx.Client(base_url=address, timeout=5) as client:
            token = client.post("/auth/token", json=login)
            if token.is_client_error:
                return True
            client.headers["Authorization"] = f"Bearer {token.raise_for_status().json()['access_token']}"
            seen = [client.get(f"/api/v2/{what}").raise_for_status() for what in ("dags", "importErrors")]
            read = sum(answer.json()["total_entries"] for answer in seen)
    except (httpx.HTTPError, ValueError):
        return False
    return bool(read >= len(list(DAGS.glob("*.py"))))


def main(verb: str) -> None:
    """Run the command of the Makefile."""
    if verb == "up":
        address = up()
        sys.stdout.write(
            f"Airflow   {address}\n"
            f"login     {airflow_secrets.USER}\n"
            f"password  {airflow_secrets.password(AIRFLOW_HOME)}\n"
            f"logs      {_shown(LOGS)}\nstop      make down\n"
        )
    else:
        stopped = down()
        sys.stdout.write(f"stopped {', '.join(stopped)}\n" if stopped else "nothing was running\n")


def _shown(path: Path) -> Path:
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except PermalakeError as error:
        sys.exit(f"permalake: {error}")
