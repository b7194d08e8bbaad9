"""The REST API under the load of many clients, beside a bare FastAPI application, in turns.

``python -m bench.serve_load [DAYS [BLOCKS [WORKERS]]]``: a lake of made-up rows, see
:mod:`bench.serve_lake`. 64 connections ask for blocks and signed VAAs by ids drawn at random over all days.
The bare application returns one such answer from memory, with as many workers. Servers run one at a time, on
the cores of the generator, so that a share compares what one machine can do.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import psutil

from bench import serve_lake
from bench.machine import say
from bench.serve_lake import CHAIN, EMITTER, MILESTONES_A_DAY, NETWORK, WORMHOLE
from permalake.api.workers import usable_cores
from permalake.config import Settings
from permalake.local.services.daemon import free_port

DAYS, BLOCKS = 100, 1_370_000
VAAS = 36_500
CLIENTS, SECONDS, TURNS = 64, 5.0, 2
SEED = 42
TAGGED = 1_000
"""Answers that a client holds, and asks for again."""
RAW = "application/vnd.iota.serializer-v1"


def bare_app() -> object:
    """Return the application that the API is compared with: one route, one answer from memory."""
    from fastapi import FastAPI
    from starlette.responses import Response

    app = FastAPI()
    body, tag = bytes(Path(os.environ["BENCH_BODY"]).read_bytes()), '"0123456789abcdef01234567"'
    headers = {"ETag": tag, "Cache-Control": "public, max-age=31536000, immutable"}

    @app.get("/blocks/{block_id}")
    async def answer(block_id: str) -> Response:  # noqa: ARG001
        return Response(body, headers=headers, media_type="application/json")

    return app


@dataclass
class Seen:
    """Seconds of each request, and the statuses."""

    seconds: list[float] = field(default_factory=list)
    statuses: dict[int, int] = field(default_factory=dict)


class _Client(asyncio.Protocol):
    """One connection that asks again as soon as it is answered."""

    def __init__(self, requests: Callable[[], bytes], seen: Seen, until: float) -> None:
        self._requests, self._seen, self._until = requests, seen, until
        self._buffer = b""
        self.ended = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._ask()

    def _ask(self) -> None:
        self._began = time.perf_counter()
        self._transport.write(self._requests())  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, end, body = self._buffer.partition(b"\r\n\r\n")
        if not end:
            return
        status = int(head[9:12])
        at = head.lower().find(b"content-length:")
        length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
        if len(body) < length:
            return
        self._buffer = b""
        self._seen.seconds.append(time.perf_counter() - self._began)
        self._seen.statuses[status] = self._seen.statuses.get(status, 0) + 1
        if time.perf_counter() < self._until:
            self._ask()
        else:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_result(exc)


def load(port: int, requests: Callable[[], bytes], seconds: float = SECONDS) -> Seen:
    """Ask from all clients for some seconds."""
    seen = Seen()

    async def clients() -> None:
        until = time.perf_counter() + seconds
        loop = asyncio.get_running_loop()
        made = [
            await loop.create_connection(lambda: _Client(requests, seen, until), "127.0.0.1", port)
            for _ in range(CLIENTS)
        ]
        await asyncio.gather(*(client.ended for _, client in made))

    asyncio.run(clients())
    return seen


def request(path: str, **headers: str) -> bytes:
    """Return a request's bytes."""
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"GET {path} HTTP/1.1\r\nhost: localhost\r\n{lines}\r\n".encode()


@contextmanager
def server(command: Sequence[str], **variables: str) -> Iterator[tuple[int, int]]:
    """A server in a process of its own; yields its port and its id."""
    port = free_port()
    process = subprocess.Popen([*command, "--port", str(port)], env={**os.environ, **variables}, stdout=2)
    try:
        for _ in range(600):
            assert process.poll() is None
            if load_once(port):
                break
            time.sleep(0.2)
        yield port, process.pid
    finally:
        process.terminate()
        process.wait()


def load_once(port: int) -> bool:
    """Return whether something listens."""
    import socket

    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


def bare(body: bytes, folder: Path, workers: int) -> object:
    """Return the context of a bare application's server."""
    (folder / "body").write_bytes(body)
    command = [sys.executable, "-m", "uvicorn", "bench.serve_load:bare_app", "--factory", "--workers"]
    more = ["--log-level", "warning", "--no-access-log"]
    return server([*command, str(workers), *more], BENCH_BODY=str(folder / "body"))


def paths(settings: Settings, days: int, count: int = 20_000) -> dict[str, list[bytes]]:
    """Return requests by kind, drawn at random over all days."""
    files = Path(settings.lake.warehouse, NETWORK, "messages", "data", "**", "*.parquet")
    ids = duckdb.sql(f"SELECT message_id FROM read_parquet('{files}') USING SAMPLE {count}").fetchall()
    rng = random.Random(SEED)
    blocks = [f"/{NETWORK}/api/core/v2/blocks/0x{one}" for (one,) in ids]
    vaas = [
        f"/wormhole/v1/signed_vaa/{CHAIN}/{EMITTER}/{rng.randrange(VAAS // days * days)}"
        for _ in range(count)
    ]
    milestones = [
        f"/{NETWORK}/api/core/v2/milestones/by-index/{rng.randrange(1, days * MILESTONES_A_DAY)}"
        for _ in range(count)
    ]
    return {
        "blocks as JSON": [request(one) for one in blocks],
        "blocks as bytes": [request(one, accept=RAW) for one in blocks],
        "signed VAAs": [request(one) for one in vaas],
        "milestones": [request(one) for one in milestones],
    }


def conditional(port: int, requests: Sequence[bytes]) -> list[bytes]:
    """Return the requests of a client that holds the answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    found = []
    for one in requests:
        path = one.split(b" ", 2)[1].decode()
        connection.putrequest("GET", path, skip_accept_encoding=True)
        connection.endheaders()
        answer = connection.getresponse()
        answer.read()
        found.append(request(path, if_none_match=answer.headers["etag"]))
    return found


def drawn(requests: Sequence[bytes]) -> Callable[[], bytes]:
    """Return what gives a request at random."""
    rng = random.Random(SEED)
    return lambda: rng.choice(requests)


def measured(folder: Path, settings: Settings, days: int, workers: Sequence[str]) -> dict[str, list[float]]:
    """Requests a second by kind, of the API and of the bare application, one value a turn."""
    rates: dict[str, list[float]] = {}
    kinds = paths(settings, days)
    serve = [str(Path(sys.executable).with_name("permalake")), "serve", *workers]
    variables = {"PERMALAKE_CONFIG": str(folder / "permalake.toml"), "PERMALAKE_HOME": str(folder / "home")}
    peers = int(workers[-1]) if workers else usable_cores()
    for turn in range(TURNS):
        with bare(bytes(900), folder, peers) as (port, _):  # type: ignore[attr-defined]
            load(port, drawn([request("/blocks/0x12")]), 1)
            seen = load(port, drawn([request("/blocks/0x12")]))
            _note(rates, "bare", seen, turn)
        with server(serve, **variables) as (port, pid):
            time.sleep(float(os.environ.get("BENCH_WARM", "3")))
            blocks = kinds["blocks as JSON"][:TAGGED]
            for kind, requests in {**kinds, "not modified": conditional(port, blocks)}.items():
                load(port, drawn(requests), 2)
                _note(rates, kind, load(port, drawn(requests)), turn)
            processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
            memory = [one.memory_info() for one in processes]
            sizes = [round((one.rss - one.shared) / 2**20) for one in memory]
            say(f"resident memory without mapped files, of each process, in MiB: {sizes}")
    return rates


def _note(rates: dict[str, list[float]], kind: str, seen: Seen, turn: int) -> None:
    rate, p99 = len(seen.seconds) / SECONDS, statistics.quantiles(seen.seconds, n=100)[98]
    rates.setdefault(kind, []).append(rate)
    share = rate / rates["bare"][turn]
    middle = statistics.median(seen.seconds)
    say(
        f"{kind}: {rate:,.0f}/s, {share:.2f} of bare, p50 {middle * 1000:.1f} ms, p99 {p99 * 1000:.0f} ms, "
        f"worst {max(seen.seconds) * 1000:.0f} ms, {seen.statuses}"
    )


def run(days: int = DAYS, blocks: int = BLOCKS, *workers: int) -> list[dict]:
    """Return the rates of each kind as shares of the bare application."""
    with tempfile.TemporaryDirectory(prefix="bench-serve-") as name:
        folder = Path(name)
        settings = serve_lake.settings_of(folder)
        serve_lake.publish(settings, NETWORK, days, blocks)
        serve_lake.publish(settings, WORMHOLE, days, VAAS // days * days)
        rates = measured(folder, settings, days, [f for n in workers for f in ("--workers", str(n))])
    peer = statistics.median(rates.pop("bare"))
    return [
        {
            "name": f"{CLIENTS} clients, {kind} by ids drawn at random, a lake of {days} days, from the lake",
            "unit": "requests/s",
            "ours": round(statistics.median(values)),
            "peer": round(peer),
            "peer_name": "a bare FastAPI application that returns bytes from memory",
            "ratio": round(statistics.median(values) / peer, 3),
        }
        for kind, values in rates.items()
    ]


if __name__ == "__main__":
    print(json.dumps(run(*map(int, sys.argv[1:])), indent=1))
