"""The REST API over a large lake: what a start, a publication and a row cost as history grows.

``python -m bench.serve_large [DAYS [BLOCKS [VAAS]]]``: a lake of made-up rows, see :mod:`bench.serve_lake`,
and one of a thirtieth of its days, served in turns by two workers. 3,000 days of 50 million blocks take
50 GB, half of them the server's copies of single rows.
"""

from __future__ import annotations

import http.client
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import psutil

from bench import serve_lake
from bench.machine import say
from bench.serve_lake import CHAIN, EMITTER, MILESTONES_A_DAY, NETWORK, WORMHOLE
from bench.serve_load import server
from permalake.config import Settings

DAYS, BLOCKS, VAAS = 3_000, 50_000_000, 3_000_000
PART = 30
"""The lake beside it has one day of so many."""
WORKERS, REQUESTS = 2, 3_000
SEED = 19
_COPIED = 4
"""Tables whose rows are copied."""


def run(days: int = DAYS, blocks: int = BLOCKS, vaas: int = VAAS) -> list[dict]:
    """Return the figures of both lakes, those of the small one as the peer's."""
    with tempfile.TemporaryDirectory(prefix="bench-serve-large-") as name:
        small, large = (
            _served(Path(name) / str(part), days // part, blocks // part, vaas // part) for part in (PART, 1)
        )
    of = f"a lake of {days} days, {blocks:,} blocks and {vaas:,} VAAs"
    return [
        {
            "name": f"{what}, {of}",
            "unit": unit,
            "ours": large[what],
            "peer": small[what],
            "peer_name": f"the same of a lake of {days // PART} days",
            "ratio": round(small[what] / large[what], 3) if large[what] else None,
        }
        for what, unit in _UNITS.items()
    ]


_UNITS = {
    "first start to first answer": "s",
    "first start to all copies of single rows": "s",
    "second start to first answer": "s",
    "until a new day is served": "s",
    "block by id, p50": "ms",
    "block by id, p99": "ms",
    "signed VAA by id, p50": "ms",
    "signed VAA by id, p99": "ms",
    "memory of a worker without mapped files": "MiB",
}


def _served(folder: Path, days: int, blocks: int, vaas: int) -> dict[str, float]:
    folder.mkdir()
    settings = serve_lake.settings_of(folder)
    serve_lake.publish(settings, NETWORK, days, blocks)
    serve_lake.publish(settings, WORMHOLE, days, vaas)
    found: dict[str, float] = {}
    path = _block_paths(settings, 1)[0]
    with _server(folder) as (port, _, began):
        _until(lambda: _status(port, path) == 200)
        found["first start to first answer"] = time.perf_counter() - began
        _until(lambda: _copies(folder) == _COPIED * days)
        found["first start to all copies of single rows"] = time.perf_counter() - began
    with _server(folder) as (port, pid, began):
        _until(lambda: _status(port, path) == 200)
        found["second start to first answer"] = time.perf_counter() - began
        paths = {
            "block by id": _block_paths(settings, REQUESTS),
            "signed VAA by id": _vaa_paths(vaas),
        }
        for kind, asked in paths.items():
            seconds = _seconds(port, asked)
            found[f"{kind}, p50"] = statistics.median(seconds) * 1000
            found[f"{kind}, p99"] = statistics.quantiles(seconds, n=100)[98] * 1000
        workers = [one.memory_info() for one in psutil.Process(pid).children(recursive=True)]
        most = max(one.rss - one.shared for one in workers)
        found["memory of a worker without mapped files"] = most / 2**20
        serve_lake.publish(settings, NETWORK, 1, blocks // days, after=days)
        published = time.perf_counter()
        newest = f"/{NETWORK}/api/core/v2/milestones/by-index/{(days + 1) * MILESTONES_A_DAY}"
        # Each connection may reach another worker.
        _until(lambda: {_status(port, newest) for _ in range(10)} == {200})
        found["until a new day is served"] = time.perf_counter() - published
    found = {what: round(value, 2) for what, value in found.items()}
    say(f"{days} days: {found}")
    return found


@contextmanager
def _server(folder: Path) -> Iterator[tuple[int, int, float]]:
    """A server: its port, its process, and when that began."""
    began = time.perf_counter()
    command = [str(Path(sys.executable).with_name("permalake")), "serve", "--workers", str(WORKERS)]
    variables = {"PERMALAKE_CONFIG": str(folder / "permalake.toml"), "PERMALAKE_HOME": str(folder / "home")}
    with server(command, **variables) as (port, pid):
        yield port, pid, began


def _copies(folder: Path) -> int:
    return sum(1 for _ in (folder / "home").glob("serve/*/*/*.rows/*.arrow"))


def _block_paths(settings: Settings, count: int) -> list[str]:
    found = Path(settings.lake.warehouse, NETWORK, "messages", "data").rglob("*.parquet")
    files = sorted(map(str, found))
    chosen = random.Random(SEED).sample(files, min(len(files), 100))
    ids = duckdb.sql(f"SELECT message_id FROM read_parquet({chosen}) USING SAMPLE {count}").fetchall()
    return [f"/{NETWORK}/api/core/v2/blocks/0x{one}" for (one,) in ids]


def _vaa_paths(vaas: int) -> list[str]:
    rng = random.Random(SEED)
    return [f"/wormhole/v1/signed_vaa/{CHAIN}/{EMITTER}/{rng.randrange(vaas)}" for _ in range(REQUESTS)]


def _seconds(port: int, paths: list[str]) -> list[float]:
    """Return the seconds of each request of one client, after a warm-up with others."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    seconds = []
    for path in paths:
        began = time.perf_counter()
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        seconds.append(time.perf_counter() - began)
        assert answer.status == 200, path
    connection.close()
    return seconds[len(seconds) // 3 :]


def _status(port: int, path: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    except OSError:
        return 0
    finally:
        connection.close()


def _until(condition: Callable[[], bool], seconds: float = 3600) -> None:
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.02)


if __name__ == "__main__":
    print(json.dumps(run(*map(int, sys.argv[1:])), indent=1))
