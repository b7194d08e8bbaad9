"""Exports whose clients leave or stop reading: slots and connections are free at once."""

from __future__ import annotations

import asyncio
import socket
import threading
import time

import httpx
import pytest

from permalake.api.app import create_app
from permalake.api.export_response import ExportResponse
from permalake.config import Settings
from permalake.lake.serving import QueryTimeoutError
from permalake.lake.serving.pool import QueryPool
from support import lakes
from support.lakes import DAY1, NETWORK, OpenLake, pass_audit, put
from support.live_api import live_api

ROWS = 150_000
WRITE_SECONDS = 1.0


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exports") / "lake"
    networks = {NETWORK: {"protocol": "stardust", "bech32_hrp": "smr", "path": "."}}
    serve = {"lake_pool": 2, "write_timeout": WRITE_SECONDS}
    settings = Settings(lake={"warehouse": str(folder)}, networks=networks, serve=serve)  # type: ignore[arg-type]
    lake = OpenLake(settings)
    attempt = lake.begin(NETWORK, DAY1, DAY1, "run")
    row = lakes.analytics(DAY1, 0, 1)[0] | {"transferred_tokens": 2**62}
    put(settings, attempt, "ms_analytics", [row | {"milestone_index": index} for index in range(ROWS)])
    lake.builds.publish(pass_audit(attempt))
    with live_api(create_app(settings)) as url:
        yield "127.0.0.1", int(url.rpartition(":")[2])


def download(address, form="csv"):
    """Begin an export and read its first bytes alone."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(address)
    path = f"/api/analytics/v1/{NETWORK}/ms_analytics?format={form}"
    client.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    assert client.recv(15) == b"HTTP/1.1 200 OK"
    return client


def exported(address, seconds):
    """Export until it succeeds; return the size of the answer."""
    url = f"http://{address[0]}:{address[1]}/api/analytics/v1/{NETWORK}/ms_analytics?format=csv"
    until = time.monotonic() + seconds
    while (answer := httpx.get(url, timeout=30)).status_code == 503:
        assert answer.json()["detail"] == "two exports are under way; try again"
        assert time.monotonic() < until, "the slots are not free"
        time.sleep(0.05)
    return answer.text.count("\n")


@pytest.mark.parametrize("form", ["csv", "arrow", "parquet"])
def test_a_client_that_leaves_frees_its_slot(address, form) -> None:
    for client in [download(address, form) for _ in range(2)]:
        client.close()
    assert exported(address, 30) == ROWS + 1


def test_who_asks_for_headers_alone_takes_no_slot(address) -> None:
    url = f"http://{address[0]}:{address[1]}/api/analytics/v1/{NETWORK}/ms_analytics?format=csv"
    for _ in range(3):
        assert httpx.head(url).status_code == 200
    assert exported(address, 30) == ROWS + 1


def test_clients_that_do_not_read_are_cut_off(address) -> None:
    clients = [download(address) for _ in range(2)]
    assert exported(address, 60) == ROWS + 1
    for client in clients:
        client.close()


def test_the_query_of_a_client_that_leaves_is_cancelled(tmp_path) -> None:
    pool, expired = QueryPool(str(tmp_path), 1), threading.Event()
    threading.Timer(0.3, pool.expire, [expired]).start()
    began = time.monotonic()
    with pytest.raises(QueryTimeoutError), pool.connection(began + 60, expired) as connection:
        connection.sql("SELECT count(*) FROM range(10000000) a, range(10000000) b").fetchall()
    assert time.monotonic() - began < 55, "it was cancelled, not out of time"
    with pool.connection(time.monotonic() + 1) as connection:
        assert connection.sql("SELECT 1").fetchall() == [(1,)]
    pool.close()


def test_an_error_before_the_first_chunk_frees_the_slot() -> None:
    def chunks():
        raise ValueError("no rows")
        yield b""

    async def receive():
        await asyncio.sleep(60)
        return {"type": "http.disconnect"}

    async def send(message):
        raise AssertionError(message)

    async def ask():
        for _ in range(3):
            with pytest.raises(ValueError, match="no rows"):
                await ExportResponse(chunks, lambda: None, "text/csv", {})({"type": "http"}, receive, send)

    asyncio.run(ask())
