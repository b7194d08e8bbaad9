"""The loop that follows a network: what it tries again, when it ends, whom it tells of a head that lags."""

from __future__ import annotations

import json
from datetime import date

import pytest
from sqlalchemy import insert

from permalake.config import load_settings
from permalake.domains import domain_of
from permalake.errors import ConfigError, PermalakeError
from permalake.iota.contracts import IOTA_TABLES
from permalake.lake.head import Head
from permalake.lake.head_position import Reached, set_position
from permalake.lake.leases import LeaseLostError
from permalake.lake.state import days
from permalake.pipeline import live
from permalake.pipeline.alerts import store_behind
from permalake.pipeline.live import Advance, LiveOrder, follow
from permalake.pipeline.workspace import Workspace
from support.faulty_server import FaultyServer

OLD = 1_664_388_000  # 2022-09-28


class Webhook(FaultyServer):
    """Keeps the alerts that it is sent."""

    def __init__(self):
        super().__init__()
        self.alerts = []

    def respond(self, handler, body, fault):
        self.alerts.append(json.loads(body))
        return 200, b"{}"


class Steps:
    """A head without tables, whose source gives or raises one thing after the other, then nothing."""

    def __init__(self, work, *steps):
        self.head = Head(work.settings, work.database, work.network, {})
        self.steps = list(steps)
        self.finished = 0

    def finish(self):
        self.finished += 1

    def close(self):
        pass

    def advance(self):
        step = self.steps.pop(0) if self.steps else None
        if isinstance(step, Exception):
            raise step
        return step


@pytest.fixture
def hook():
    with Webhook() as server:
        yield server


@pytest.fixture
def work(tmp_path, monkeypatch, hook):
    config = tmp_path / "permalake.toml"
    config.write_text(
        f'[lake]\nwarehouse = "{tmp_path}/lake"\n[alerts]\nwebhook = "{hook.url}"\n'
        "[live]\npoll_seconds = 0.05\nattempts = 3\nmax_lag_seconds = 0.3\n"
        '[networks.testnet]\nprotocol = "stardust"\nbech32_hrp = "rms"\nsource = "node"\nurl = "http://localhost"\n'
    )
    monkeypatch.setenv("PERMALAKE_CONFIG", str(config))
    return Workspace.open(load_settings(), domain_of("testnet"), "testnet")


ONCE = LiveOrder("testnet", "run", once=True)
A_SECOND = LiveOrder("testnet", "run", seconds=1.0)
ADDED = Advance("milestones 7 to 8", OLD)


def test_what_fails_is_tried_again_and_ends_the_run_after_so_many_in_a_row(work) -> None:
    away = PermalakeError("the node does not answer")
    steps = Steps(work, away, away, ADDED, away, away)
    follow(work, ONCE, steps)
    assert steps.finished == 1
    with pytest.raises(PermalakeError, match="the node does not answer"):
        follow(work, ONCE, Steps(work, away, away, away))
    with pytest.raises(PermalakeError, match="ValueError: what nobody foresaw"):
        follow(work, ONCE, Steps(work, *(ValueError("what nobody foresaw") for _ in range(3))))
    steps = Steps(work, ConfigError("networks.testnet.url: wrong"), ADDED)
    with pytest.raises(ConfigError):
        follow(work, ONCE, steps)
    assert steps.steps == [ADDED]


def test_pauses_grow_from_failure_to_failure_and_are_those_that_a_service_asks_for(
    work, tmp_path, monkeypatch
) -> None:
    config = tmp_path / "permalake.toml"
    config.write_text(config.read_text().replace("attempts = 3", "attempts = 20"))
    work = Workspace.open(load_settings(), domain_of("testnet"), "testnet")
    pauses = []
    monkeypatch.setattr(live.time, "sleep", pauses.append)
    away, busy = PermalakeError("away"), PermalakeError("busy", pause=150.0)
    follow(work, ONCE, Steps(work, *[away] * 13, Advance("milestone 9", None), away, busy, away))
    growing = [0.05 * 2**number for number in range(11)]
    assert pauses == pytest.approx([*growing, 60, 60, 0.05, 60, 60, 30, 0.2])
    pauses.clear()
    follow(work, ONCE, Steps(work, PermalakeError("never", pause=1e9)))
    assert sum(pauses) == 3600


def test_a_run_of_no_seconds_ends_after_a_batch(work) -> None:
    steps = Steps(work, ADDED, *[PermalakeError("it goes on")] * 3)
    follow(work, LiveOrder("testnet", "run", seconds=0.0), steps)
    assert len(steps.steps) == 3


def test_a_head_that_was_dropped_is_made_anew(work, monkeypatch) -> None:
    steps = Steps(work)
    steps.head = Head(work.settings, work.database, "testnet", {"messages": IOTA_TABLES["messages"]})
    monkeypatch.setattr(steps, "advance", lambda: steps.head.locations()["messages"] and None)
    follow(work, ONCE, steps)
    assert steps.head.locations().keys() == {"messages"}


def test_a_run_that_has_lost_the_network_ends_at_once(work) -> None:
    steps = Steps(work, LeaseLostError("testnet: another run follows it by now"), ADDED)
    with pytest.raises(LeaseLostError):
        follow(work, ONCE, steps)
    assert steps.steps == [ADDED]


def test_two_jobs_of_one_run_do_not_follow_a_network_together(work, monkeypatch) -> None:
    """A submit may outlive its Airflow task, whose next try has the same run id."""
    monkeypatch.setattr(live, "_WAIT_SECONDS", 0.0)
    job, steps = live.LiveJob(domain_of), Steps(work)
    arguments = ["--network", "testnet", "--run-id", "task", "--once"]

    def advance():
        with pytest.raises(PermalakeError, match=r"is being followed live by run task [0-9a-f]{8} since"):
            job(arguments, object())

    monkeypatch.setattr(steps, "advance", advance)
    heads = iter([steps, Steps(work)])
    monkeypatch.setattr(live, "opener", lambda _: lambda *_: next(heads))
    job(arguments, object())
    assert steps.finished == 1
    assert steps.head.holder.startswith("task ")


def test_a_head_that_stays_behind_is_told_once(work, hook) -> None:
    follow(work, A_SECOND, Steps(work, ADDED, ADDED))
    (alert,) = hook.alerts
    facts = {name: alert[name] for name in ("event", "dag", "run", "network", "day", "step")}
    assert facts == {
        "event": "lagging",
        "dag": "iota_live",
        "run": "run",
        "network": "testnet",
        "day": "2022-09-28",
        "step": "follow",
    }
    assert "the live head is " in alert["text"]


def test_a_head_whose_node_has_stopped_before_the_run_is_told_too(work, hook) -> None:
    with work.database.write() as connection:
        set_position(connection, "testnet", Reached(8, OLD))
    follow(work, A_SECOND, Steps(work))
    assert [alert["event"] for alert in hook.alerts] == ["lagging"]


def test_a_head_whose_last_day_is_published_is_told_too(work, hook) -> None:
    with work.database.write() as connection:
        set_position(connection, "testnet", Reached(8, OLD))
        connection.execute(insert(days).values(network="testnet", date=date(2022, 9, 28), publication_id=1))
    follow(work, A_SECOND, Steps(work))
    assert [alert["event"] for alert in hook.alerts] == ["lagging"]


def test_a_head_that_catches_up_is_not_told(work, hook) -> None:
    follow(work, ONCE, Steps(work, ADDED))
    follow(work, A_SECOND, Steps(work, ADDED, Advance("milestone 9", 2**32 - 1)))
    follow(work, A_SECOND, Steps(work))
    assert hook.alerts == []


def test_a_store_that_stays_away_is_told_to_the_same_targets(work, hook) -> None:
    reason = "Cassandra has lacked a part of the live head for 600 s: away"
    store_behind("iota_live", "run", "testnet", reason)
    (alert,) = hook.alerts
    assert (alert["event"], alert["dag"], alert["network"]) == ("lagging", "iota_live", "testnet")
    assert reason in alert["text"]
