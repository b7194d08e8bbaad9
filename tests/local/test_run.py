"""A run from the command line: what it says, how it ends, what it leaves."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from permalake.cli.main import main
from permalake.config import load_settings
from permalake.contracts.steps import StepResult
from permalake.errors import ConfigError, PermalakeError
from permalake.iota.day import IOTA
from permalake.lake.owner import OWNER
from permalake.local import dag_runs, run
from permalake.local.store_connections import store_settings
from permalake.pipeline.request import BuildRequest
from permalake.pipeline.workspace import Workspace
from permalake.spark.submit import SubmitEnd
from support.lakes import DAY1, NETWORK, OpenLake, pass_audit, stage_day

ARGUMENTS = ["run", "iota", "--network", NETWORK, "--date", str(DAY1)]


@pytest.fixture
def work(config, monkeypatch, tmp_path) -> Workspace:
    monkeypatch.setattr(run, "LOGS", tmp_path / "logs")
    monkeypatch.setenv("PERMALAKE_SPARK_EVENT_LOG", "")
    return Workspace.open(load_settings(config), IOTA, NETWORK)


@pytest.fixture
def hook(monkeypatch):
    """What a webhook of the settings is sent."""
    received = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("PERMALAKE_ALERTS__WEBHOOK", f"http://127.0.0.1:{server.server_port}/hook")
    yield received
    server.shutdown()


def command(config: Path, capsys, *more: str) -> tuple[int, list[str], list[str]]:
    with pytest.raises(SystemExit) as ended:
        main([*ARGUMENTS, *more, "--config", str(config)])
    out, err = capsys.readouterr()
    return int(str(ended.value.code)), out.splitlines(), err.splitlines()


def submits(monkeypatch, job) -> None:
    """Let ``job`` do what a Spark submit would do to the lake; it returns the exit code."""
    monkeypatch.setattr(run.submit, "run", lambda *given: SubmitEnd(job(*given)))


@pytest.mark.parametrize(("code", "ends_with"), [(137, 1), (2, 2)])
def test_a_submit_that_died_ends_the_run_with_one_line(
    work, config, monkeypatch, capsys, hook, code, ends_with
) -> None:
    submits(monkeypatch, lambda *_: code)
    ended, _, errors = command(config, capsys)
    assert ended == ends_with
    (line,) = errors
    title = f"permalake: iota_daily {NETWORK} {DAY1}: ingest_decode: "
    assert line.startswith(f"{title}the Spark submit ended with exit code {code}")
    assert Path(line.rpartition("; the log is ")[2]).is_file()
    (alert,) = hook
    assert (alert["event"], alert["step"], alert["day"]) == ("failed", "ingest_decode", str(DAY1))
    assert alert["run"].startswith(f"{NETWORK}_{DAY1}__cli-")
    work.builds.lease(NETWORK, DAY1, DAY1, "the next run")


def test_a_reason_of_the_ledger_is_told_and_the_line_of_its_step_is_shown(
    work, config, monkeypatch, capsys
) -> None:
    def job(submission, log, watch):
        run_id = submission.arguments[submission.arguments.index("--run-id") + 1]
        key = work.steps.start(NETWORK, run_id, "ingest_decode", (DAY1, DAY1), dag_run=run_id)
        watch()
        assert capsys.readouterr().out.splitlines()[-1].split() == ["ingest_decode", "…"]
        result = StepResult("invalid", reason="milestone 7: not its hash", retryable=False, seconds=3.0)
        work.steps.finish(key, result)
        return 2

    submits(monkeypatch, job)
    ended, lines, errors = command(config, capsys)
    assert (ended, len(errors)) == (2, 1)
    assert "ingest_decode: milestone 7: not its hash; the log is " in errors[0]
    assert lines[-1].split() == ["ingest_decode", "failed", "after", "3.0", "s"]


def test_a_day_goes_through_one_submit_and_is_unchanged_afterwards(work, config, monkeypatch, capsys) -> None:
    made = []

    def job(submission, _log, _watch):
        made.append(submission)
        run_id = submission.arguments[submission.arguments.index("--run-id") + 1]
        digest = submission.arguments[submission.arguments.index("--fingerprint") + 1]
        lake = OpenLake(work.settings)
        attempt = lake.begin(NETWORK, DAY1, DAY1, run_id, fingerprint=digest)
        stage_day(work.settings, attempt, DAY1, 1, 5)
        pass_audit(attempt)
        lake.leave()
        staged = work.builds.staged(NETWORK, run_id)
        for step in IOTA.steps[:3]:
            key = work.steps.start(NETWORK, run_id, step.name, (DAY1, DAY1), dag_run=run_id)
            state = work.staged_state(staged, step)
            work.steps.finish(key, StepResult(rows={"messages": 5}), attempt_id=staged.id, inputs=state)
        return 0

    submits(monkeypatch, job)
    # Without Spark nothing is carried: the run ends there, after the publication.
    ended, lines, errors = command(config, capsys)
    assert "1 day published" in "\n".join(lines)
    assert [submission.job for submission in made] == ["iota_ingest", "carry"]
    assert ended == 1
    assert ": published, but carry: " in errors[0]
    assert [day.date for day in work.reader.status(NETWORK) if day.published] == [DAY1]


def test_ctrl_c_frees_the_days_and_the_ledger_tells_it(work, config, monkeypatch, capsys) -> None:
    def job(submission, *_):
        run_id = submission.arguments[submission.arguments.index("--run-id") + 1]
        work.steps.start(NETWORK, run_id, "ingest_decode", (DAY1, DAY1), dag_run=run_id)
        raise KeyboardInterrupt

    submits(monkeypatch, job)
    ended, _, errors = command(config, capsys)
    assert (ended, errors) == (1, ["permalake: interrupted"])
    (row,) = work.steps.recent(NETWORK)
    assert (row.result.state, row.result.reason) == ("failed", "interrupted")
    work.builds.lease(NETWORK, DAY1, DAY1, "the next run")


def test_the_environment_is_as_before(work, config, monkeypatch, capsys) -> None:
    monkeypatch.delenv("PERMALAKE_CONFIG", raising=False)
    seen = {}

    def job(*_):
        seen.update({name: run.os.environ[name] for name in ("PERMALAKE_CONFIG", OWNER)})
        return 1

    submits(monkeypatch, job)
    command(config, capsys)
    assert seen["PERMALAKE_CONFIG"] == str(config)
    assert not seen.keys() & run.os.environ.keys()


def test_connections_of_airflow_reach_the_steps_of_the_stores(config, monkeypatch, tmp_path) -> None:
    """As variables of the settings, which the Spark submit inherits."""
    monkeypatch.setenv("PERMALAKE_CONFIG", str(config))
    monkeypatch.setenv("PERMALAKE_CASSANDRA__CONNECTION", "permanode")
    connection = {"conn_type": "cassandra", "host": "10.0.0.5", "port": 9999}
    monkeypatch.setenv("AIRFLOW_CONN_PERMANODE", json.dumps(connection))
    assert store_settings(IOTA, tmp_path / "run.log") == {
        "PERMALAKE_CASSANDRA__CONTACT_POINTS": '["10.0.0.5"]',
        "PERMALAKE_CASSANDRA__PORT": "9999",
    }
    monkeypatch.delenv("AIRFLOW_CONN_PERMANODE")
    with pytest.raises(
        PermalakeError, match="no connection permanode; set AIRFLOW_CONN_PERMANODE"
    ) as refused:
        store_settings(IOTA, tmp_path / "run.log")
    assert refused.value.exit_code == ConfigError.exit_code


@pytest.mark.timeout(20)
def test_a_run_through_airflow_ends_when_airflow_is_killed(work, config, monkeypatch, tmp_path) -> None:
    """Its workers live on for a while, and with them the pipe of its answers."""
    airflow = tmp_path / "airflow"
    airflow.write_text("#!/bin/sh\nsleep 60 &\nkill -9 $$\n")
    airflow.chmod(0o755)
    monkeypatch.setattr(dag_runs.sys, "executable", str(airflow))
    request = BuildRequest(IOTA, NETWORK, DAY1, DAY1, "run")
    with pytest.raises(PermalakeError, match=rf"{NETWORK} {DAY1}: the run did not get through; the log is"):
        dag_runs.run_dags([(work, request)], config)
