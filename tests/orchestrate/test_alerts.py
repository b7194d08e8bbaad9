"""A failure and a late day reach a webhook and a mailbox, and say what an operator needs."""

from __future__ import annotations

import json
import socketserver
import threading
from datetime import UTC, date, datetime
from email import message_from_string
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace
from uuid import uuid4

import pytest
import structlog
from airflow.api_fastapi.execution_api.datamodels.taskinstance import DagRun, TaskInstance
from airflow.callbacks.callback_requests import DagCallbackRequest, DagRunContext
from airflow.dag_processing.processor import _execute_dag_callbacks
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from permalake.audit import docs
from permalake.config import load_settings
from permalake.contracts.steps import StepResult
from permalake.errors import ConfigError, InvalidInputError, PermalakeError
from permalake.lake.identity import open_database
from permalake.lake.step_ledger import StepLedger
from permalake.orchestrate import alerts
from permalake.orchestrate.deadline import moment
from permalake.orchestrate.step_task import end_of, failure, failure_of
from permalake.pipeline.execution import died
from permalake.spark.submit import SubmitEnd

DAY = date(2022, 9, 28)
CONTEXT = {
    "ti": SimpleNamespace(
        dag_id="iota_daily", run_id="scheduled__1", task_id="audit", log_url="http://localhost:8080/log"
    ),
    "params": {"network": "shimmer", "start": None},
    "data_interval_start": datetime(2022, 9, 28, tzinfo=UTC),
    "exception": AirflowException("supply is not conserved\nsecond line"),
}


@pytest.fixture
def receiver():
    """A local HTTP server that keeps what it is sent."""
    received = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            if "refused" in self.path:
                self.send_error(403)
                return
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook", received
    server.shutdown()


@pytest.fixture
def mailbox():
    """A local SMTP server that keeps what it is sent; its port and the envelopes."""
    received = []

    class Session(socketserver.StreamRequestHandler):
        def handle(self):
            self.wfile.write(b"220 local\r\n")
            envelope = {"to": []}
            while line := self.rfile.readline().decode().strip():
                verb = line.split(":")[0].upper()
                if verb == "RCPT TO":
                    envelope["to"].append(line.partition("<")[2].partition(">")[0])
                if verb == "DATA":
                    self.wfile.write(b"354 go on\r\n")
                    lines = iter(lambda: self.rfile.readline().decode(), ".\r\n")
                    received.append(envelope | {"data": "".join(lines)})
                self.wfile.write(b"221 bye\r\n" if verb == "QUIT" else b"250 ok\r\n")
                if verb == "QUIT":
                    return

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Session) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1], received
        server.shutdown()


def test_a_webhook_gets_dag_day_step_reason_and_link(receiver, config, monkeypatch) -> None:
    url, received = receiver
    monkeypatch.setenv("PERMALAKE_CONFIG", str(config))
    monkeypatch.setenv("PERMALAKE_ALERTS__WEBHOOK", url)
    alerts.on_failure(CONTEXT)
    (alert,) = received
    assert (alert["dag"], alert["network"], alert["day"]) == ("iota_daily", "shimmer", "2022-09-28")
    assert (alert["step"], alert["reason"]) == ("audit", "supply is not conserved")
    assert alert["link"] == "http://localhost:8080/log"
    assert alert["runbook"] == "docs/runbooks/reasons.md#step_failed"
    assert alert["runbook"] in alert["text"]
    assert alert["text"].count("\n") == 0


def test_an_audit_alert_names_the_expectation_and_links_to_its_docs(config, monkeypatch) -> None:
    monkeypatch.setenv("PERMALAKE_CONFIG", str(config))
    page = docs.folder("shimmer", "stage_1") / "index.html"
    line = "audit of shimmer 2022-09-28 failed: messages: key_unique: message_id 0a, rows 2"
    ledger = StepLedger(open_database(load_settings()))
    key = ledger.start("shimmer", "stage", "audit", (DAY, DAY), dag_run="scheduled__1")
    ledger.finish(key, StepResult("invalid", reason=line, retryable=False, docs=str(page)))
    alert = alerts.describe(CONTEXT | {"exception": AirflowException(f"{line}; docs: {page}")})
    assert alert["reason"] == line
    assert alert["docs"].endswith("/permalake/audit/shimmer/stage_1/index.html")
    assert alert["runbook"] == "docs/runbooks/reasons.md#audit_failed"


def test_a_try_that_fails_before_its_step_begins_does_not_tell_what_an_earlier_one_met(
    config, monkeypatch
) -> None:
    monkeypatch.setenv("PERMALAKE_CONFIG", str(config))
    ledger = StepLedger(open_database(load_settings()))
    key = ledger.start("shimmer", "stage", "audit", (DAY, DAY), dag_run="scheduled__1")
    ledger.finish(key, StepResult("invalid", reason="audit failed", retryable=False, docs="page"))
    busy = "shimmer 2022-09-28 is being built by run other"
    alert = alerts.describe(CONTEXT | {"exception": AirflowException(busy)})
    assert (alert["reason"], alert["docs"]) == (busy, "")


def test_mail_gets_the_same_facts(config, mailbox, monkeypatch) -> None:
    port, received = mailbox
    monkeypatch.setenv("PERMALAKE_CONFIG", str(config))
    for key, value in {"HOST": "127.0.0.1", "PORT": str(port)}.items():
        monkeypatch.setenv(f"PERMALAKE_ALERTS__SMTP_{key}", value)
    monkeypatch.setenv("PERMALAKE_ALERTS__MAIL_TO", '["ops@example.org", "data@example.org"]')
    alerts.on_failure(CONTEXT)
    (envelope,) = received
    assert envelope["to"] == ["ops@example.org", "data@example.org"]
    mail = message_from_string(envelope["data"])
    assert mail["Subject"] == "iota_daily shimmer 2022-09-28: audit failed"
    assert "reason: supply is not conserved" in mail.get_payload()
    assert "link: http://localhost:8080/log" in mail.get_payload()


def test_mail_of_a_user_without_a_password_is_not_sent_in_the_clear(
    config, mailbox, monkeypatch, caplog
) -> None:
    port, received = mailbox
    monkeypatch.setenv("PERMALAKE_CONFIG", str(config))
    for key, value in {"HOST": "127.0.0.1", "PORT": str(port), "USER": "permalake"}.items():
        monkeypatch.setenv(f"PERMALAKE_ALERTS__SMTP_{key}", value)
    monkeypatch.setenv("PERMALAKE_ALERTS__MAIL_TO", '["ops@example.org"]')
    alerts.on_failure(CONTEXT)
    assert received == []
    assert "by mail: alerts.smtp_user has no password" in caplog.text
    assert "set PERMALAKE_ALERTS__SMTP_PASSWORD" in caplog.text


def test_a_target_that_is_down_does_not_stop_the_other_and_its_address_is_not_told(
    receiver, mailbox, config, monkeypatch, caplog
) -> None:
    port, received = mailbox
    monkeypatch.setenv("PERMALAKE_CONFIG", str(config))
    monkeypatch.setenv("PERMALAKE_ALERTS__WEBHOOK", receiver[0].replace("/hook", "/refused/secret-token"))
    monkeypatch.setenv("PERMALAKE_ALERTS__SMTP_HOST", "127.0.0.1")
    monkeypatch.setenv("PERMALAKE_ALERTS__SMTP_PORT", str(port))
    monkeypatch.setenv("PERMALAKE_ALERTS__MAIL_TO", '["ops@example.org"]')
    alerts.on_failure(CONTEXT)
    assert len(received) == 1
    assert "by webhook: it answered 403" in caplog.text
    assert "secret-token" not in caplog.text


TIMEOUT = "iota_daily testnet 2022-09-28: run failed: the run took too long and was ended"


@pytest.mark.parametrize(
    ("reason", "task", "text"),
    [
        ("timed_out", "analytics", TIMEOUT),
        ("timed_out", None, TIMEOUT.replace(" testnet 2022-09-28:", " :")),
        ("task_failure", "analytics", None),
    ],
    ids=["under way", "no task known", "a task failed"],
)
def test_a_run_that_took_too_long_is_told_and_no_other(
    dag_bag, receiver, config, monkeypatch, reason, task, text
) -> None:
    """As Airflow's DAG processor calls what a DAG has for its failures."""
    url, received = receiver
    monkeypatch.setenv("PERMALAKE_CONFIG", str(config))
    monkeypatch.setenv("PERMALAKE_ALERTS__WEBHOOK", url)
    ids = {"dag_id": "iota_daily", "run_id": "testnet_2022-09-28__scheduled"}
    run = DagRun(
        **ids,
        logical_date=None,
        data_interval_start=None,
        data_interval_end=None,
        run_after=datetime(2022, 9, 29, tzinfo=UTC),
        start_date=datetime(2022, 9, 29, tzinfo=UTC),
        end_date=None,
        run_type="manual",
        state="failed",
        conf={"network": "testnet", "start": "2022-09-28"},
        consumed_asset_events=[],
        partition_key=None,
    )
    last = task and TaskInstance(id=uuid4(), task_id=task, **ids, try_number=1, dag_version_id=uuid4())
    request = DagCallbackRequest(
        filepath="iota_daily.py",
        **ids,
        bundle_name="dags-folder",
        bundle_version=None,
        msg=reason,
        context_from_server=DagRunContext(dag_run=run, last_ti=last),
    )
    _execute_dag_callbacks(dag_bag, request, structlog.get_logger())
    assert [alert["text"].partition(" http")[0] for alert in received] == ([text] if text else [])
    for alert in received:
        assert (alert["event"], alert["step"], alert["run"]) == ("failed", "run", ids["run_id"])
        assert alert["link"].endswith(f"/dags/iota_daily/runs/{ids['run_id']}")


LATE = {
    "dag_run": {
        "dag_id": "iota_daily",
        "dag_run_id": "scheduled__2022-09-29",
        "data_interval_start": "2022-09-28T00:00:00Z",
        "state": "running",
        "conf": {},
    },
    "deadline": {"id": "1", "deadline_time": "2022-09-29T06:00:00Z"},
}


def test_a_late_day_says_by_when_it_was_due(config, monkeypatch) -> None:
    monkeypatch.setenv("PERMALAKE_CONFIG", str(config))
    alert = alerts.missed(LATE)
    assert alert["text"].startswith("iota_daily shimmer 2022-09-28: not published by 2022-09-29 06:00 UTC")
    assert "/dags/iota_daily/runs/scheduled__2022-09-29" in alert["link"]
    assert alert["runbook"] == "docs/runbooks/reasons.md#late"


@pytest.mark.parametrize(
    ("run_type", "conf", "expected"),
    [
        ("scheduled", {}, datetime(2022, 9, 29, 7, 30, tzinfo=UTC)),
        (
            "manual",
            {"permalake_scheduled": True, "start": "2022-09-27"},
            datetime(2022, 9, 28, 7, 30, tzinfo=UTC),
        ),
        ("manual", {"start": "2022-09-27"}, None),
        ("backfill", {}, None),
    ],
)
def test_only_scheduled_runs_have_a_deadline(config, monkeypatch, run_type, conf, expected) -> None:
    monkeypatch.setenv("PERMALAKE_CONFIG", str(config))
    monkeypatch.setenv("PERMALAKE_ALERTS__DEADLINE", "07:30")
    assert moment(run_type, conf, datetime(2022, 9, 28, tzinfo=UTC)) == expected


def test_an_alert_that_cannot_be_sent_is_a_line_in_the_log(config, monkeypatch, caplog) -> None:
    monkeypatch.setenv("PERMALAKE_CONFIG", str(config))
    monkeypatch.setenv("PERMALAKE_ALERTS__WEBHOOK", "http://127.0.0.1:9/closed")
    alerts.on_failure(CONTEXT)
    assert "could not be sent" in caplog.text
    assert "supply is not conserved" in caplog.text


SUBMIT = """Cannot execute: spark-submit --master local[*] job.py. Error code is: {code}.
Last spark-submit output:
26/11/21 07:49:54 INFO ShutdownHookManager: Shutdown hook called"""


def test_a_submit_that_died_tells_its_exit_code_alone() -> None:
    failure = failure_of(died(end_of(AirflowException(SUBMIT.format(code=1)))))
    assert type(failure) is AirflowException
    assert str(failure) == "the Spark submit ended with exit code 1: it recorded no reason; see its output"


@pytest.mark.parametrize(
    ("code", "line", "reason"),
    [
        (137, "", "it was killed, most likely because memory ran out"),
        (-9, "", "it was killed, most likely because memory ran out"),
        (1, "OSError: [Errno 24] Too many open files", "the limit of open files is too low"),
        (
            1,
            "Error: Could not reserve enough space for object heap",
            "memory",
        ),
        (1, "java.io.IOException: No space left on device", "the disk is full; free space"),
        (
            2,
            "permalake: networks.shimmer.path: /nowhere is no directory",
            "networks.shimmer.path: /nowhere is",
        ),
    ],
)
def test_a_submit_that_died_tells_what_its_output_says(code, line, reason) -> None:
    failure = failure_of(died(end_of(AirflowException(f"{SUBMIT.format(code=code)}\n{line}"))))
    assert str(failure).startswith(f"the Spark submit ended with exit code {code}: {reason}")
    assert "\n" not in str(failure)


def test_a_submit_that_never_began_tells_the_first_line() -> None:
    with pytest.raises(PermalakeError, match=r"^Cannot execute: no spark-submit$"):
        end_of(AirflowException("Cannot execute: no spark-submit\nsecond line"))


def test_what_a_retry_cannot_mend_is_not_tried_again() -> None:
    assert type(failure_of(died(SubmitEnd(2)))) is AirflowFailException
    assert type(failure_of(died(SubmitEnd(1)))) is AirflowException
    assert type(failure(ConfigError("networks.x: not configured"))) is AirflowFailException
    assert type(failure(InvalidInputError("milestone 7"))) is AirflowFailException
    assert type(failure(PermalakeError("busy"))) is AirflowException
    assert str(failure(ValueError("first\nsecond"))) == "ValueError: first"
