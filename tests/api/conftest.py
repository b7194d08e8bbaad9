"""A lake with a published day, a day that failed its audit, quarantine and runs, behind the API."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import update

from permalake.api.app import create_app
from permalake.audit import docs
from permalake.audit.findings import AuditReport, Finding
from permalake.config import Settings
from permalake.contracts.steps import StepResult
from permalake.lake.state import stamp, step_runs
from permalake.lake.step_ledger import StepLedger
from support import lakes
from support.conformance import conforming_answers  # noqa: F401 - autouse
from support.lakes import DAY1, DAY2, NETWORK
from support.whole_server import whole_server

HOSTILE = '<img src=x onerror=alert(1)>\u202e\x1b[31m\x00"&'
LONG = "A" * 65_536
FAILURES = (
    "ms_analytics: messages_add_up: milestone 2 expected 7, found 5",
    f"tags: tag_well_formed: {HOSTILE}{LONG}",
    "a line of another shape",
)
WARNED = (
    Finding("tags", "tags_are_text", "tags are text", "warning", ok=False, count=1, days={DAY2: 1}),
    Finding("tags", "tags_are_short", "tags are short", "warning", ok=False, count=1, days={DAY1: 1}),
)
BEGAN = datetime(2022, 9, 30, 6, 0, tzinfo=UTC)
STEPS = (
    # step, seconds after the beginning, seconds, result
    ("ingest_decode", 0, 40, StepResult(rows={"messages": 7}, quarantined=2, log=(HOSTILE, LONG))),
    ("analytics", 41, 9, StepResult(state="failed", reason="the node was away")),
    ("analytics", 60, 5, StepResult(rows={"ms_analytics": 1})),
    ("audit", 66, 125, StepResult(state="invalid", reason=FAILURES[0])),
)


def quarantined(origin, raw, reason="malformed"):
    seen = datetime(2022, 9, 30, tzinfo=UTC)
    row = {"source": "archive_rest", "origin": origin, "reason": reason, "detail": f"found {HOSTILE}{LONG}"}
    return {**row, "raw": raw, "seen_at": seen, "date": DAY1}


@pytest.fixture(scope="session")
def troubled(tmp_path_factory):
    """The client ``api``, and the ``attempt`` of the day that failed."""
    folder = tmp_path_factory.mktemp("troubled")
    networks = {NETWORK: {"protocol": "stardust", "bech32_hrp": "smr", "path": str(folder)}}
    settings = Settings(lake={"warehouse": str(folder / "lake")}, networks=networks)  # type: ignore[arg-type]
    lake = lakes.OpenLake(settings)
    first = lake.begin(NETWORK, DAY1, DAY1, "first")
    lakes.stage_day(settings, first, DAY1, 1, 5)
    refused = [quarantined(f"line {at}", b"\xff" * 400, "bad_signature") for at in range(3)]
    lakes.put(settings, first, "quarantine", [*refused, quarantined(HOSTILE + LONG, HOSTILE.encode() * 20)])
    lake.builds.publish(lakes.pass_audit(first))
    second = lake.begin(NETWORK, DAY2, DAY2, "second")
    lakes.stage_day(settings, second, DAY2, 2, 7)
    second.pin().verdict(DAY2, False, FAILURES)
    _record(lake)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(docs, "root", lambda: folder / "audit")
        target = docs.folder(NETWORK, second.id)
        docs.write(AuditReport((DAY2,), WARNED), target, title=f"{NETWORK} {DAY2}", run_id="second")
        with TestClient(create_app(settings)) as api:
            yield SimpleNamespace(api=api, attempt=second.id, lake=lake, settings=settings)


def _record(lake):
    ledger = StepLedger(lake.database)
    for step, begins, seconds, result in STEPS:
        key = ledger.start(NETWORK, "second", step, (DAY2, DAY2), submit="ingest_decode")
        ledger.finish(key, result)
        began = BEGAN + timedelta(seconds=begins)
        times = {"began_at": stamp(began), "ended_at": stamp(began + timedelta(seconds=seconds))}
        with lake.database.write() as connection:
            here = (step_runs.c.step == step) & (step_runs.c.try_number == key.number)
            connection.execute(update(step_runs).where(here).values(**times))


@pytest.fixture(scope="session")
def whole(whole_lake, tmp_path_factory):
    """A server in a process of its own, over both synthetic tangles and the Wormhole world."""
    with whole_server(whole_lake, tmp_path_factory.mktemp("whole")) as server:
        yield server
