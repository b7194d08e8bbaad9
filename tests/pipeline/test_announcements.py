"""What a webhook is told of publications, over real HTTP: complete, at least once, never in their way."""

from __future__ import annotations

import json
import re
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import update

from permalake.api.app import create_app
from permalake.config import load_settings
from permalake.contracts.steps import PUBLISH
from permalake.iota.day import IOTA
from permalake.lake.identity import open_database
from permalake.lake.state import publications
from permalake.pipeline import alerts, announcements
from permalake.pipeline.jobs import StepArguments, run_step
from permalake.pipeline.workspace import Workspace
from permalake.transparency import keys
from support.lakes import DAY1, DAY2, NETWORK, OpenLake, build, pass_audit, stage_day
from support.signed_lakes import NAME, at_home, sign

ATTRIBUTE = re.compile(r"[a-z0-9]{1,20}")


@pytest.fixture
def hook():
    """A webhook that keeps what it takes; ``answers``: what it says first, once ``may_answer`` is set."""
    state = SimpleNamespace(taken=[], types=[], answers=[], may_answer=threading.Event(), asked=0)
    state.may_answer.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            state.asked += 1
            state.may_answer.wait(600)
            status = state.answers.pop(0) if state.answers else 204
            if status == 204:
                state.taken.append(json.loads(body))
                state.types.append(self.headers["Content-Type"])
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    state.url = f"http://127.0.0.1:{server.server_port}/hook/secret-token"
    yield state
    server.shutdown()


@pytest.fixture
def publish(config, hook, monkeypatch):
    """Publish a day by the step of a run; return what the step did."""
    monkeypatch.setenv("PERMALAKE_CONFIG", str(config))
    monkeypatch.setenv("PERMALAKE_ALERTS__WEBHOOK", hook.url)
    monkeypatch.setattr(alerts, "_PAUSE", 0.01)

    def run(day, milestone, count, run_id):
        settings = load_settings()
        lake = OpenLake(settings)
        attempt = lake.begin(NETWORK, day, day, run_id)
        stage_day(settings, attempt, day, milestone, count)
        pass_audit(attempt)
        lake.leave()
        work = Workspace.open(settings, IOTA, NETWORK)
        return run_step(work, StepArguments(NETWORK, day, day, run_id), IOTA.step(PUBLISH))

    return run


def feed():
    with TestClient(create_app(load_settings())) as api:
        return api.get("/api/publications", params={"since": 0}).json()["publications"]


def test_a_publication_is_told_as_a_cloud_event_with_what_the_feed_has(publish, hook) -> None:
    assert publish(DAY1, 1, 5, "first").state == "done"
    (event,) = hook.taken
    assert hook.types == ["application/cloudevents+json; charset=utf-8"]
    assert [event["data"]] == feed()
    assert event["data"]["days"][0]["tables"]["messages"]["rows"] == 5
    assert (event["event"], event["subject"]) == ("published", f"{NETWORK}/{DAY1}")
    assert event["text"] == f"{NETWORK} {DAY1}: published, publication {event['data']['number']}"
    # What the specification of CloudEvents 1.0 asks for.
    assert event["specversion"] == "1.0"
    assert all(event[name] and isinstance(event[name], str) for name in ("id", "source", "type"))
    assert all(ATTRIBUTE.fullmatch(name) for name in event)
    assert event["source"].startswith("urn:permalake:")
    assert datetime.fromisoformat(event["time"]) <= datetime.now(UTC)


def test_an_event_of_a_signed_lake_has_digests_and_none_is_sent_in_the_place_of_who_signs(
    publish, hook, tmp_path, monkeypatch
) -> None:
    at_home(monkeypatch, tmp_path / "home")
    keys.create_key(NAME)
    publish(DAY1, 1, 5, "first")
    settings = load_settings()
    lake = OpenLake(settings)
    build(settings, lake, DAY2, 2, 3, "other")
    assert announcements.announce(settings, lake.database, NETWORK, "first") == []
    sign(settings, lake)
    announcements.announce(settings, lake.database, NETWORK, "other")
    assert [one["data"] for one in hook.taken] == feed()
    assert all(day["manifest"] for one in hook.taken for day in one["data"]["days"])
    build(settings, lake, DAY2, 2, 4, "without a key")
    announcements.announce(settings, lake.database, NETWORK, "without a key")
    assert hook.taken[-1]["data"]["days"][0]["manifest"] is None


def test_a_correction_tells_what_it_withdrew(publish, hook) -> None:
    publish(DAY1, 1, 5, "first")
    publish(DAY1, 1, 0, "second")
    assert [one["data"]["withdrawn"] for one in hook.taken] == [
        [],
        [{"date": str(DAY1), "tables": ["messages"]}],
    ]
    assert len({(one["source"], one["id"]) for one in hook.taken}) == 2


def test_a_webhook_that_fails_for_a_moment_is_tried_again(publish, hook) -> None:
    hook.answers = [503, 429]
    result = publish(DAY1, 1, 5, "first")
    assert (hook.asked, len(hook.taken)) == (3, 1)
    assert "told the webhook of publication 1" in result.log


@pytest.mark.parametrize("status", [500, 400])
def test_what_a_webhook_refuses_is_published_and_told_next_time(publish, hook, status, caplog) -> None:
    hook.answers = [status] * (3 if status >= 500 else 1)
    result = publish(DAY1, 1, 5, "first")
    assert (result.state, result.days, hook.taken) == ("done", (DAY1,), [])
    line = f"the webhook was not told of a publication of {NETWORK}: it answered {status}"
    assert line in result.log
    assert "secret-token" not in caplog.text + str(result.log)
    publish(DAY2, 2, 3, "second")
    assert [one["data"]["start"] for one in hook.taken] == [str(DAY1), str(DAY2)]


def test_a_webhook_that_does_not_answer_holds_a_publication_up_for_a_bounded_time(
    publish, hook, monkeypatch
) -> None:
    monkeypatch.setattr(alerts, "TIMEOUT", 0.3)
    hook.may_answer.clear()
    result = publish(DAY1, 1, 5, "first")
    hook.may_answer.set()
    assert result.state == "done"
    assert any(line.endswith("ReadTimeout") for line in result.log)


def test_a_webhook_is_not_told_of_what_was_published_long_ago(publish, hook) -> None:
    hook.answers = [400]
    publish(DAY1, 1, 5, "first")
    with open_database(load_settings()).write() as connection:
        connection.execute(update(publications).values(published_at="2026-01-01T00:00:00.000000Z"))
    publish(DAY2, 2, 3, "second")
    assert [one["data"]["start"] for one in hook.taken] == [str(DAY2)]


def test_a_large_event_leaves_its_days_to_the_feed(publish, hook, monkeypatch) -> None:
    monkeypatch.setattr(announcements, "LARGEST_EVENT", 100)
    publish(DAY1, 1, 5, "first")
    (event,) = hook.taken
    assert event["data"] == feed()[0] | {"days": None}


def test_publications_need_not_be_told(publish, hook, monkeypatch) -> None:
    monkeypatch.setenv("PERMALAKE_ALERTS__PUBLICATIONS", "false")
    assert publish(DAY1, 1, 5, "first").state == "done"
    assert hook.asked == 0
