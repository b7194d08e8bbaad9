"""Observations from an explorer: by its list, by message, within the settings' limit, and never twice."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from permalake.config import Settings
from permalake.net import http
from permalake.wormhole.sources import observation_files, observation_service
from permalake.wormhole.sources.observation_service import Fetched
from support.explorer_server import ExplorerServer

DAY = dt.date(2024, 3, 11)
MIDNIGHT = dt.datetime(2024, 3, 11, tzinfo=dt.UTC)
EMITTER = "ab" * 32
GUARDIANS = [f"{index:040x}" for index in range(1, 6)]
QUORUM = 4
HASTY = http.RetryPolicy(read=0.3, whole=1.0, back_off=0.01, attempts=10, longest_pause=3, failures=1)
LATER = (MIDNIGHT + dt.timedelta(days=3)).timestamp()


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "RetryPolicy", lambda: HASTY)


def name(sequence: int) -> str:
    return f"2/{EMITTER}/{sequence}"


def observed(sequence: int, second: int, guardians: list[str] = GUARDIANS) -> list[dict[str, Any]]:
    """One observation a second, from so many seconds of the day on."""
    return [
        {
            "id": f"{name(sequence)}/{guardian}/{'00' * 32}",
            "emitterChain": 2,
            "emitterAddr": EMITTER,
            "sequence": sequence,
            "guardianAddr": f"0x{guardian.upper()}",
            "signature": "c2lnbmF0dXJl",
            "indexedAt": (MIDNIGHT + dt.timedelta(seconds=second + at)).isoformat().replace("+00:00", "Z"),
        }
        for at, guardian in enumerate(guardians)
    ]


def busy_day(messages: int) -> list[dict[str, Any]]:
    """Observations of a day and of its neighbours, a message every ten minutes."""
    return [one for at in range(-30, messages + 50) for one in observed(at + 1000, 600 * at)]


def settings_of(folder: Path, server: ExplorerServer, requests: int = 1000) -> Settings:
    section = {
        "source": "wormholescan",
        "url": server.url,
        "rate_per_second": 1000.0,
        "observation_requests": requests,
    }
    return Settings(lake={"warehouse": str(folder)}, wormhole=section)


def fetch(settings: Settings, messages: int, *, force: bool = False, now: float = LATER) -> Fetched:
    signers = {name(at + 1000): QUORUM for at in range(messages)}
    section = settings.wormhole
    assert section is not None
    return observation_service.fetch(settings, section, [(DAY, signers)], force=force, clock=lambda: now)


def landed(settings: Settings) -> dict[int, set[str]]:
    """Guardians by sequence, of what a build of the day reads."""
    assert settings.wormhole is not None
    cache = observation_service.landing(settings, settings.wormhole)
    found = defaultdict(set)
    for one in cache.documents(DAY - dt.timedelta(3), DAY + dt.timedelta(3)):
        assert set(one) <= set(observation_files.FIELDS)
        found[one["sequence"]].add(str(one["guardianAddr"]).lower().removeprefix("0x"))
    return found


def test_a_busy_day_comes_by_the_list_and_is_not_asked_for_again(tmp_path: Path) -> None:
    with ExplorerServer(observations=busy_day(144), faulty=0.2, seed=1) as server:
        server.largest["observations"] = 100
        settings = settings_of(tmp_path, server)
        assert fetch(settings, 144) == Fetched()
        assert all(landed(settings)[at + 1000] == set(GUARDIANS) for at in range(144))
        singles = [path for _, path, *_ in server.calls if path.endswith(tuple("0123456789"))]
        assert singles == []
        asked = len(server.calls)
        assert fetch(settings, 144) == Fetched()
        assert len(server.calls) == asked
        fetch(settings, 144, force=True)
        assert len(server.calls) == asked, "nothing is missing, so force has nothing to ask for"


def test_one_empty_page_does_not_end_the_list(tmp_path: Path) -> None:
    class Forgetful(ExplorerServer):
        empty = 1

        def _page(self, kind, found, query, time_of, field):
            if query["page"] == ["3"] and self.empty:
                self.empty -= 1
                return 200, None
            return super()._page(kind, found, query, time_of, field)

    with Forgetful(observations=busy_day(144)) as server:
        server.largest["observations"] = 100
        settings = settings_of(tmp_path, server)
        assert fetch(settings, 144) == Fetched()
        assert not server.empty
        assert all(landed(settings)[at + 1000] == set(GUARDIANS) for at in range(144))
        singles = [path for _, path, *_ in server.calls if path.endswith(tuple("0123456789"))]
        assert singles == []


def test_few_messages_are_asked_for_one_by_one(tmp_path: Path) -> None:
    with ExplorerServer(observations=busy_day(3), faulty=0.2, seed=2) as server:
        settings = settings_of(tmp_path, server)
        assert fetch(settings, 3) == Fetched()
        assert {path for _, path, *_ in server.calls} == {
            f"/api/v1/observations/{name(at + 1000)}" for at in range(3)
        }
        assert landed(settings) == {at + 1000: set(GUARDIANS) for at in range(3)}


def test_a_service_that_repeats_its_page_is_not_asked_without_end(tmp_path: Path) -> None:
    many = [f"{index:040x}" for index in range(1, 61)]
    with ExplorerServer(observations=observed(1000, 0, many)) as server:
        server.before = lambda path, query: query.update(page=["0"])
        assert fetch(settings_of(tmp_path, server), 1) == Fetched()
        assert len(server.calls) == 20


def test_what_the_list_lacks_is_asked_for_by_message_and_after_a_day_again(tmp_path: Path) -> None:
    late = observed(1005, 20 * 86_400)  # indexed weeks later
    here = [one for one in busy_day(144) if one["sequence"] != 1005] + late[:2]
    with ExplorerServer(observations=here) as server:
        settings = settings_of(tmp_path, server)
        fetch(settings, 144)
        [single] = [path for _, path, *_ in server.calls if path.endswith(name(1005))]
        assert landed(settings)[1005] == set(GUARDIANS[:2]), "stored with its message, not with its time"
        asked = len(server.calls)
        fetch(settings, 144)
        assert len(server.calls) == asked
        server.observations = [*here, *late[2:]]
        fetch(settings, 144, now=LATER + 86_401)
        assert landed(settings)[1005] == set(GUARDIANS)
        assert [path for _, path, *_ in server.calls[asked:]] == [single]


def test_a_run_sends_no_more_requests_than_allowed_and_the_next_one_goes_on(tmp_path: Path) -> None:
    with ExplorerServer(observations=busy_day(144)) as server:
        server.largest["observations"] = 50
        settings = settings_of(tmp_path, server, requests=24)
        left = [144]
        while left[-1]:
            before = len(server.calls)
            left.append(fetch(settings, 144).left.get(DAY, 0))
            assert len(server.calls) - before <= 24
            assert left[-1] < left[-2]
        assert len(left) > 2
        assert all(landed(settings)[at + 1000] == set(GUARDIANS) for at in range(144))


def test_a_list_that_is_too_deep_is_left_for_single_messages(tmp_path: Path) -> None:
    with ExplorerServer(observations=busy_day(144)) as server:
        server.deepest = 0
        settings = settings_of(tmp_path, server)
        assert fetch(settings, 144) == Fetched()
        assert all(landed(settings)[at + 1000] == set(GUARDIANS) for at in range(144))


def test_a_service_without_observations_is_asked_once(tmp_path: Path) -> None:
    with ExplorerServer() as server:
        settings = settings_of(tmp_path, server)
        assert fetch(settings, 144) == Fetched()
        assert len(server.calls) == 1
        assert fetch(settings, 144) == Fetched()
        assert len(server.calls) == 1


def test_a_service_that_is_down_stops_nothing_and_keeps_what_it_answered(tmp_path: Path) -> None:
    with ExplorerServer(observations=busy_day(144)) as server:
        settings = settings_of(tmp_path, server)
        server.largest["observations"] = 100
        server.before = lambda path, query: setattr(server, "down", "503" if len(server.calls) > 8 else None)
        found = fetch(settings, 144)
        assert found.fault is not None
        assert 0 < found.left[DAY] < 144
        server.before, server.down = lambda path, query: None, None
        assert fetch(settings, 144) == Fetched()
        assert all(landed(settings)[at + 1000] == set(GUARDIANS) for at in range(144))
