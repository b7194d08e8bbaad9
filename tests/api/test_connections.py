"""Clients that send too much, too slowly or not at all, and those that do not read, over real sockets."""

from __future__ import annotations

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress

import httpx
import pytest

from support.limited_api import application, build
from support.live_api import live_api

LIMITS = {
    "header_timeout": 2.5,
    "body_timeout": 2.5,
    "write_timeout": 2.5,
    "connections": 64,
    "header_bytes": 16_384,
    "concurrency": 8,
    "queue": 8,
    "queue_seconds": 30,
}
PROMPT = 2.4
"""Seconds within which ``/health`` has to answer, below every deadline of :data:`LIMITS`."""
POST = (
    b"POST /shimmer/echo HTTP/1.1\r\nHost: a\r\n"
    b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
)
HEALTH = b"GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
IDLE = b"GET /nosuch HTTP/1.1\r\nHost: a\r\n\r\n"
LARGE = b"GET /shimmer/large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with served(tmp_path_factory) as found:
        yield found


@pytest.fixture(scope="module")
def patient(tmp_path_factory):
    """A server that ends no connection because of its time."""
    with served(tmp_path_factory, header_timeout=300, body_timeout=300, write_timeout=300) as found:
        yield found


@contextmanager
def served(tmp_path_factory, **more):
    folder = tmp_path_factory.mktemp("connections")
    build(folder)
    with live_api(application(folder, **(LIMITS | more))) as url:
        yield ("127.0.0.1", int(url.rpartition(":")[2]))


def connected(address, sent=b"", window=None):
    client = socket.socket()
    if window is not None:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
    client.connect(address)
    client.settimeout(10)
    client.sendall(sent)
    return client


@contextmanager
def crowd(address, number, sent=b"", window=None):
    """Hold that many connections that have sent this."""
    with ExitStack() as stack:
        yield [stack.enter_context(connected(address, sent, window)) for _ in range(number)]


def is_healthy(address):
    began = time.monotonic()
    with connected(address, HEALTH) as client:
        line, _ = answered(client)
    return (line, time.monotonic() - began < PROMPT) == ("HTTP/1.1 200 OK", True)


def answered(client):
    """Return the first line that the server sends before it closes, and the seconds until then."""
    began, parts = time.monotonic(), []
    try:
        while part := client.recv(65536):
            parts.append(part)
    except ConnectionError:
        pass
    return b"".join(parts).partition(b"\r\n")[0].decode(), time.monotonic() - began


def dripped(client, seconds=10.0):
    """Send a byte now and then; return the seconds until the server has closed."""
    began = time.monotonic()
    client.settimeout(0.05)
    while time.monotonic() - began < seconds:
        try:
            client.sendall(b"a")
            if not client.recv(4096):
                break
        except TimeoutError:
            continue
        except ConnectionError:
            break
    return time.monotonic() - began


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET /health HT", b"GET /health HTTP/1.1\r\nHost: a\r\nX-A: "],
    ids=["none", "line", "header"],
)
def test_headers_that_do_not_come_end_the_connection(address, sent) -> None:
    with connected(address, sent) as client:
        line, seconds = answered(client)
    assert line == "HTTP/1.1 408 Request Timeout"
    assert seconds < 9


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /health HTTP/1.1\r\nHost: a\r\nX-A: ",
        b"GET /health HTTP/1.1\r\nHost: a\r\n\r\nGET /health HTTP/1.1\r\nX-A: ",
        POST,
        # Answered before its body is there.
        POST.replace(b"/shimmer/echo", b"/nosuch"),
    ],
    ids=["header", "second request", "body", "body of an answered request"],
)
def test_a_client_that_drips_is_cut_off(address, sent) -> None:
    with connected(address, sent) as client:
        assert dripped(client) < 9


def test_headers_that_do_not_end_are_refused_before_they_fill_memory(address) -> None:
    with connected(address, b"GET /health HTTP/1.1\r\nHost: a\r\n") as client:
        sent = 0
        with suppress(ConnectionError):
            while sent < 20_000_000:
                sent += client.send(b"X-A: b\r\n" * 1000)
        assert sent < 8_000_000  # what buffers of the kernel take
    with connected(address, b"GET /health HTTP/1.1\r\nHost: a\r\nAccept: " + b"a" * 20_000) as client:
        assert answered(client)[0] == "HTTP/1.1 431 Request Header Fields Too Large"


def test_whole_headers_that_are_too_large_are_refused_with_a_problem(address) -> None:
    url = f"http://{address[0]}:{address[1]}/health"
    assert httpx.get(url, headers={"X-A": "a" * 8_000}).status_code == 200
    answer = httpx.get(url, headers={"X-A": "a" * 17_000})
    assert (answer.status_code, answer.json()["detail"]) == (431, "the headers are larger than 16384 bytes")


def test_slow_bodies_stop_nobody(address) -> None:
    with crowd(address, 40, POST + b"{") as clients:
        assert is_healthy(address)
        url = f"http://{address[0]}:{address[1]}/shimmer/echo"
        assert httpx.post(url, json={"a": "b"}).text == "1"
        assert answered(clients[0])[0] == "HTTP/1.1 408 Request Timeout"
    assert is_healthy(address)


@pytest.mark.parametrize("sent", [b"", POST, IDLE], ids=["none", "body", "idle"])
def test_more_connections_than_allowed_end_the_one_that_waits_longest(patient, sent) -> None:
    with crowd(patient, 300, sent) as clients, connected(patient, HEALTH) as newest:
        for client in (newest, clients[0]):
            client.settimeout(60)
        assert answered(newest)[0] == "HTTP/1.1 200 OK"
        line, _ = answered(clients[0])
        # Of a crowd of requests even the first may find the queue full.
        assert line in ("", "HTTP/1.1 404 Not Found", "HTTP/1.1 503 Service Unavailable")


def has_answered_the_crowd_before(address) -> None:
    """Wait until no request of clients that have left is in the queue."""
    until = time.monotonic() + 60
    while httpx.get(f"http://{address[0]}:{address[1]}/nosuch").status_code == 503:
        assert time.monotonic() < until


def test_a_request_that_is_being_answered_is_not_ended_for_another_connection(address) -> None:
    nap = IDLE.replace(b"/nosuch", b"/shimmer/nap")
    has_answered_the_crowd_before(address)
    with connected(address, IDLE) as client:
        assert client.recv(12) == b"HTTP/1.1 404"
        client.recv(4096)
        client.sendall(nap)
        time.sleep(0.1)
        with crowd(address, 150):
            assert client.recv(12) == b"HTTP/1.1 200"


def test_who_does_not_read_is_cut_off_and_stops_nobody(address) -> None:
    with crowd(address, 24, LARGE, window=4096) as clients:
        time.sleep(0.2)
        assert is_healthy(address)
        time.sleep(3)
        assert len(clients[0].recv(1 << 16)) > 0  # what was under way
        assert answered(clients[0])[1] < 9
    assert is_healthy(address)


def test_who_reads_slowly_gets_everything(address) -> None:
    with connected(
        address, b"GET /shimmer/large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 65_536
    ) as client:
        received = 0
        began = time.monotonic()
        while part := client.recv(500_000):
            received += len(part)
            time.sleep(0.05 if time.monotonic() - began < 3 else 0)
    assert received > 8_000_000


def test_health_answers_while_every_slot_is_taken(address) -> None:
    url = f"http://{address[0]}:{address[1]}/shimmer/nap"
    with ThreadPoolExecutor(16) as pool:
        naps = [pool.submit(httpx.get, url) for _ in range(16)]
        time.sleep(0.1)
        assert is_healthy(address)
        assert {nap.result().status_code for nap in naps} == {200}
