"""The shared client against a server of this machine that misbehaves."""

from __future__ import annotations

import itertools
import logging
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal
from random import Random

import pytest

from permalake.net.http import RequestRejectedError, RetryPolicy, Service, UnavailableError, retry_after
from permalake.net.limits import Rate
from support.faulty_server import busiest
from support.price_server import FAULTS, PriceServer

HASTY = RetryPolicy(read=0.3, whole=1.0, back_off=0.01, attempts=12, longest_pause=3, failures=3, rest=30)
ONE_TRY = RetryPolicy(read=0.3, back_off=0.01, attempts=1, failures=1000)
PATH = "/coins/gold/market_chart/range"
PARAMS = {"from": "0", "to": "100"}
HISTORY = {"gold": [(10, "1.000000000000000001"), (20, "2")]}


def prices(document):
    return [(moment, price) for moment, price in document["prices"]]


@pytest.fixture
def server():
    with PriceServer(HISTORY) as running:
        yield running


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_a_reason_of_one_line_and_the_answer_after_it_counts(server, fault) -> None:
    server.down = fault
    with Service("gold mine", server.url, 1000, {"x-key": "hush"}, ONE_TRY) as service:
        with pytest.raises(UnavailableError) as caught:
            service.get(PATH, prices, PARAMS)
        assert str(caught.value).startswith("gold mine: ")
        assert "\n" not in str(caught.value)
        assert "hush" not in str(caught.value)
        server.down = None
        assert service.get(PATH, prices, PARAMS) == [(10_000, Decimal("1.000000000000000001")), (20_000, 2)]


def test_faults_that_pass_are_outlasted(server) -> None:
    server.faulty = 0.5
    with Service("gold", server.url, 500, None, HASTY) as service, ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: service.get(PATH, prices, PARAMS), range(30)))
    assert [len(answer) for answer in answers] == [2] * 30
    assert len({call[4] for call in server.calls}) >= 6  # many kinds of faults were met


def test_the_rate_is_never_exceeded_by_any_number_of_threads(server) -> None:
    with Service("gold", server.url, 25, None, HASTY) as service, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: service.get(PATH, prices, PARAMS), range(60)))
    assert len(server.calls) == 60
    assert server.busiest(1.0) <= 25


def test_the_rate_holds_where_requests_arrive_however_long_they_are_on_their_way() -> None:
    rate, ways, arrivals = Rate(30), Random(4), []

    def ask(_):
        with rate.request():
            time.sleep(ways.random() * 0.5)
            arrivals.append(time.monotonic())

    with ThreadPoolExecutor(30) as pool:
        list(pool.map(ask, range(60)))
    assert len(arrivals) == 60
    assert busiest(arrivals) <= 30


PACED = """
import sys, time
from pathlib import Path
from permalake.net.shared_pace import CrossProcessRateLimiter
pace = CrossProcessRateLimiter("https://node.example.org/key", Path(sys.argv[1]))
for _ in range(10):
    pace.wait(0.05)
    print(time.monotonic())
"""


def test_processes_keep_one_pace(tmp_path) -> None:
    command = [sys.executable, "-c", PACED, str(tmp_path)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    left = sorted(float(line) for one in running for line in one.communicate()[0].split())
    assert len(left) == 30
    assert left[-1] - left[0] >= 29 * 0.05 - 0.02
    assert busiest(left, 0.5) <= 12
    assert "key" not in "".join(path.name for path in tmp_path.iterdir())


def test_processes_that_share_a_rate_have_the_whole_of_it_together(server) -> None:
    services = [Service("gold", server.url, 40, None, HASTY, shares=4) for _ in range(4)]

    def ask(service):
        with service:
            for _ in range(10):
                service.get(PATH, prices, PARAMS)

    begun = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, services))
    assert time.monotonic() - begun < 3, "at a quarter of the rate it takes 4 s"
    assert server.busiest(1.0) <= 40


@pytest.mark.parametrize("fault", ["429 1", "503 1"])
def test_retry_after_keeps_every_thread_away(server, fault) -> None:
    server.down = fault
    retry_policy = RetryPolicy(attempts=1, failures=2)
    with Service("gold", server.url, 1000, None, retry_policy) as service, ThreadPoolExecutor(4) as pool:
        with pytest.raises(UnavailableError, match=f"HTTP {fault[:3]}"):
            service.get(PATH, prices, PARAMS)
        server.down = None
        list(pool.map(lambda _: service.get(PATH, prices, PARAMS), range(4)))
    refused, *later = [call[0] for call in server.calls]
    assert len(later) == 4
    assert min(later) - refused >= 1.0


def test_a_pause_that_is_too_long_to_wait_for_is_part_of_the_error(server) -> None:
    server.down = "429 500"
    with Service("gold", server.url, 1000, None, HASTY) as service, pytest.raises(UnavailableError) as caught:
        service.get(PATH, prices, PARAMS)
    assert caught.value.pause == 500
    assert len(server.calls) == 1


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7),
        (" 0 ", 0),
        ("Wed, 01 Jan 2025 00:01:30 GMT", 90),
        ("Tue, 31 Dec 2024 00:00:00 GMT", 0),
        ("soon", None),
        ("-1", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_in_both_its_forms(value, seconds) -> None:
    assert retry_after(value, datetime(2025, 1, 1, tzinfo=UTC)) == seconds


@pytest.mark.parametrize("fault", ["429", "429 0", "503 0"])
def test_a_service_that_asks_for_no_pause_gets_the_usual_one(server, fault) -> None:
    server.down = fault
    service = Service("gold", server.url, 1000, None, RetryPolicy(attempts=4, back_off=0.1))
    with service, pytest.raises(UnavailableError, match=f"HTTP {fault[:3]}"):
        service.get(PATH, prices, PARAMS)
    arrivals = [call[0] for call in server.calls]
    gaps = [later - earlier for earlier, later in itertools.pairwise(arrivals)]
    assert all(gap >= least for gap, least in zip(gaps, (0.05, 0.1, 0.2), strict=True))


def test_a_service_that_asks_to_wait_too_long_is_not_waited_for(server) -> None:
    hurried = RetryPolicy(attempts=5, back_off=0.01, longest_pause=0.0001)
    server.down = "429 30"
    with Service("gold", server.url, 1000, None, hurried) as service:
        with pytest.raises(UnavailableError, match="HTTP 429"):
            service.get(PATH, prices, PARAMS)
        assert len(server.calls) == 1


def test_the_breaker_opens_and_then_answers_at_once(server) -> None:
    server.down = "500"
    retry_policy = RetryPolicy(attempts=2, back_off=0.01, failures=3, rest=0.5)
    with Service("gold", server.url, 1000, None, retry_policy) as service:
        for _ in range(20):
            with pytest.raises(UnavailableError, match="HTTP 500"):
                service.get(PATH, prices, PARAMS)
        assert len(server.calls) == 6  # three requests of two attempts each, then none
        server.down = None
        time.sleep(0.6)
        assert len(service.get(PATH, prices, PARAMS)) == 2
        assert len(service.get(PATH, prices, PARAMS)) == 2


def test_a_service_that_is_given_up_stays_so_whatever_is_on_its_way(server) -> None:
    server.delay = 0.3
    with Service("gold", server.url, 1000) as service, ThreadPoolExecutor(1) as pool:
        on_its_way = pool.submit(service.get, PATH, prices, PARAMS)
        while not server.most_at_once:
            time.sleep(0.01)
        with pytest.raises(UnavailableError, match="gold: no such key"):
            service.give_up("no such key")
        assert len(on_its_way.result()) == 2
        assert service.is_down
        with pytest.raises(UnavailableError, match="gold: no such key"):
            service.get(PATH, prices, PARAMS)
    assert len(server.calls) == 1


def test_an_error_of_the_request_is_no_failure_of_the_service(server) -> None:
    retry_policy = RetryPolicy(attempts=3, back_off=0.01, failures=2)
    with Service("gold", server.url, 1000, None, retry_policy) as service:
        for _ in range(5):
            with pytest.raises(RequestRejectedError) as caught:
                service.get("/coins/lead/market_chart/range", prices, PARAMS)
            assert (caught.value.status, caught.value.body) == (404, {"error": "coin not found"})
    assert len(server.calls) == 5


def test_what_is_not_found_counts_only_in_whole_words_of_the_service(server) -> None:
    server.faults, server.faulty = ("garbage",), 0.5
    with Service("gold", server.url, 1000, None, HASTY) as service:
        for _ in range(5):
            with pytest.raises(RequestRejectedError) as caught:
                service.get("/coins/lead/market_chart/range", prices, PARAMS)
            assert caught.value.body == {"error": "coin not found"}
    assert len(server.calls) > 5


def test_answers_beyond_the_limits_are_not_read_to_the_end(server) -> None:
    server.history["gold"] = [(at, "1") for at in range(100)]
    small = RetryPolicy(attempts=1, largest_answer=100)
    service = Service("gold", server.url, 1000, None, small)
    with service, pytest.raises(UnavailableError, match="more than 100 bytes"):
        service.get(PATH, prices, PARAMS)


def test_secrets_stay_out_of_logs_and_errors(server, caplog) -> None:
    server.down = "reset"
    caplog.set_level(logging.DEBUG)
    service = Service("gold", f"{server.url}/hush-path", 1000, {"x-key": "hush-head"}, ONE_TRY)
    with service, pytest.raises(UnavailableError) as caught:
        service.get(PATH, prices, {**PARAMS, "key": "hush-query"})
    told = caplog.text + repr(caught.value) + repr(caught.value.__cause__) + str(caught.value.__context__)
    assert server.calls[0][3]["x-key"] == "hush-head"
    assert "hush" not in told


def test_no_server_at_all_is_unavailable() -> None:
    with PriceServer(HISTORY) as gone:
        url = gone.url
    service = Service("gold", url, 1000, None, ONE_TRY)
    with service, pytest.raises(UnavailableError, match="no connection"):
        service.get(PATH, prices, PARAMS)
