"""A failure reaches a webhook, and says what an operator needs."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from permalake.errors import ConfigError, PermalakeError
from permalake.orchestrate import alerts
from permalake.orchestrate.spark_step import failure, reason_of

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
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook", received
    server.shutdown()


def test_a_webhook_gets_dag_day_step_reason_and_link(receiver, config, monkeypatch):
    url, received = receiver
    monkeypatch.setenv("PERMALAKE_CONFIG", str(config))
    monkeypatch.setenv("PERMALAKE_ALERTS__WEBHOOK", url)
    alerts.on_failure(CONTEXT)
    (alert,) = received
    assert (alert["dag"], alert["network"], alert["day"]) == ("iota_daily", "shimmer", "2022-09-28")
    assert (alert["step"], alert["reason"]) == ("audit", "supply is not conserved")
    assert alert["link"] == "http://localhost:8080/log"
    assert alert["text"].count("\n") == 0


def test_an_alert_that_cannot_be_sent_is_a_line_in_the_log(config, monkeypatch, caplog):
    monkeypatch.setenv("PERMALAKE_CONFIG", str(config))
    monkeypatch.setenv("PERMALAKE_ALERTS__WEBHOOK", "http://127.0.0.1:9/closed")
    alerts.on_failure(CONTEXT)
    assert "could not be sent" in caplog.text
    assert "supply is not conserved" in caplog.text


SUBMIT = """Cannot execute: spark-submit --master local[*] job.py. Error code is: {code}.
Last spark-submit output:
26/11/21 07:49:46 WARN Utils: Your hostname resolves to a loopback address
{said}
26/11/21 07:49:54 INFO ShutdownHookManager: Shutdown hook called"""


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("permalake: milestone 17339: block 0a is missing", "milestone 17339: block 0a is missing"),
        ("Traceback (most recent call last):\nValueError: odd", "ValueError: odd"),
        ("java.lang.OutOfMemoryError: Java heap space", "java.lang.OutOfMemoryError: Java heap space"),
        ("python: can't open file 'job.py'", "python: can't open file 'job.py'"),
    ],
)
def test_the_reason_is_found_in_what_spark_submit_printed(said, reason):
    assert reason_of(AirflowException(SUBMIT.format(code=1, said=said))) == reason


def test_a_wrong_configuration_is_not_tried_again():
    def kind(error):
        return type(failure(error, reason_of(error)))

    assert kind(AirflowException(SUBMIT.format(code=2, said="permalake: x"))) is AirflowFailException
    assert kind(ConfigError("networks.x: not configured")) is AirflowFailException
    assert kind(AirflowException(SUBMIT.format(code=1, said="permalake: x"))) is AirflowException
    assert kind(PermalakeError("busy")) is AirflowException
