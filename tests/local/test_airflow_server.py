"""The parts of ``make up``'s Airflow, with programs that do nothing in their place."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer

import psutil
import pytest

from permalake.local import airflow_server
from permalake.local.services.daemon import free_port
from permalake.process_start import start_of


@pytest.fixture
def started(tmp_path, monkeypatch):
    """The names of the parts that were started, in order; each is a sleeping program."""
    names = []

    def start(part, *_, **options):
        names.append(part)
        return subprocess.Popen(["sleep", "60"], **options)

    monkeypatch.setattr(airflow_server, "AIRFLOW_HOME", tmp_path)
    monkeypatch.setattr(airflow_server, "STATE", tmp_path / "server.json")
    monkeypatch.setattr(airflow_server, "server_environment", lambda *_: {"of": "the server"})
    monkeypatch.setattr(airflow_server, "_start", start)
    monkeypatch.setattr(airflow_server, "_well", lambda _: True)
    monkeypatch.setattr(airflow_server, "_has_read_dags", lambda _: True)
    monkeypatch.setenv("PERMALAKE_PORT", str(free_port()))
    yield names
    airflow_server.down()


def test_two_that_start_it_at_once_start_it_once(started, monkeypatch) -> None:
    monkeypatch.setattr(airflow_server, "_wait_until_answering", lambda *_: time.sleep(0.5))
    with ThreadPoolExecutor() as both:
        first, second = both.map(lambda _: airflow_server.up(), range(2))
    assert first == second
    assert started == list(airflow_server.PARTS)


def test_who_runs_tasks_beside_it_waits_until_its_api_server_answers(started) -> None:
    codes = iter((503, 503))
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(next(codes, 200))
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sleeper = subprocess.Popen(["sleep", "60"], start_new_session=True)
    part = {"group": sleeper.pid, "start": start_of(psutil.Process(sleeper.pid))}
    address = f"http://127.0.0.1:{server.server_port}"
    airflow_server.STATE.write_text(json.dumps({"address": address, "parts": {"api-server": part}}))
    try:
        with airflow_server.execution_api() as environment:
            assert environment == {"of": "the server"}
            assert asked == ["/execution/health"] * 3
    finally:
        server.shutdown()
    assert started == []


def test_down_ends_what_a_part_has_started_in_other_process_groups(started, monkeypatch) -> None:
    """As Airflow starts a task, and the task its Spark job."""
    monkeypatch.setattr(airflow_server, "_wait_until_answering", lambda *_: None)
    task = "import subprocess; subprocess.run(['sleep', '60'], process_group=0)"
    part = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {task!r}], process_group=0)"
    monkeypatch.setattr(
        airflow_server,
        "_start",
        lambda *_, **options: subprocess.Popen([sys.executable, "-c", part], **options),
    )
    airflow_server.up()
    scheduler = psutil.Process(json.loads(airflow_server.STATE.read_text())["parts"]["scheduler"]["group"])
    while len(descendants := scheduler.children(recursive=True)) < 2:
        time.sleep(0.05)
    assert airflow_server.down() == list(airflow_server.PARTS)
    for process in descendants:
        assert not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
