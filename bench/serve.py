"""The REST API: a message by its id out of the lake, Cassandra and Bigtable, beside bare reads of its row.

``python -m bench.serve [DAYS [BLOCKS]]``: a lake of made-up rows (see :mod:`bench.serve_lake`), and some of
them in a real Cassandra and a real Bigtable emulator of this benchmark's own. Only rows that the stores hold
are asked for, of any day, so that every backend reads the same. A server of each backend runs in a process
of its own on the loopback; one client on one connection asks for a block as JSON, or a signed VAA, after a
warm-up over all days. The bare readers take the same rows in this process, the driver by the same prepared
statement; bare DuckDB is told the file and the milestone of each.
"""

from __future__ import annotations

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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from bench import serve_lake
from bench.machine import at_rest, say, timed
from bench.serve_lake import CHAIN, EMITTER, NETWORK, WORMHOLE
from bench.serve_stores import SELECT, fill_bigtable, fill_cassandra, stored_blocks, stores
from permalake.config import Settings
from permalake.local.services.daemon import free_port
from permalake.stores import cassandra

DAYS, BLOCKS, VAAS = 365, 5_000_000, 36_500
STORED = 20
"""One block of so many is in Cassandra, too."""
WARM_UP, REQUESTS = 1_500, 2_000
SEED = 19


@dataclass(frozen=True)
class StoredBlock:
    """A block that lake and store hold, and where the lake has it."""

    message_id: str
    milestone_index: int
    file: str
    date: object


def run(days: int = DAYS, blocks: int = BLOCKS) -> list[dict]:
    """Milliseconds of a request at the median and the 99th percentile, beside those of a bare read."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="bench-serve-") as name, stores(Path(name)) as sections:
        folder = Path(name)
        settings = serve_lake.settings_of(folder, **sections)
        serve_lake.publish(settings, NETWORK, days, blocks)
        serve_lake.publish(settings, WORMHOLE, days, VAAS // days * days)
        known = [StoredBlock(*row) for row in stored_blocks(settings, STORED)]
        held = fill_cassandra(settings, STORED)
        fill_bigtable(settings)
        asked = _Asked(known, days)
        found = _measured(folder, settings, asked)
    return _figures(found, days, blocks, held, load)


class _Asked:
    """What is asked for, in a random order that is the same in every run."""

    def __init__(self, known: Sequence[StoredBlock], days: int) -> None:
        rng = random.Random(SEED)
        by_day: dict[object, list[StoredBlock]] = {}
        for one in known:
            by_day.setdefault(one.date, []).append(one)
        ordered = [by_day[day] for day in sorted(by_day)]
        self.warm = [rng.choice(ordered[at % len(ordered)]) for at in range(WARM_UP)]
        self.any = rng.choices(known, k=REQUESTS)
        self.early, self.late = (rng.choices(ordered[day], k=REQUESTS // 4) for day in (4, -1))
        self.vaas = rng.choices(range(VAAS // days * days), k=REQUESTS)


def _measured(folder: Path, settings: Settings, asked: _Asked) -> dict[str, list[float]]:
    """Milliseconds of every request, by who was asked."""
    found: dict[str, list[float]] = {}
    for backend in ("lake", "stores"):
        with _api(folder, backend) as ask:
            _times(lambda one: ask(_block_path(one)), asked.warm)
            found[backend] = _times(lambda one: ask(_block_path(one)), asked.any)
            for name in ("early", "late"):
                found[f"{backend} {name}"] = _times(lambda one: ask(_block_path(one)), getattr(asked, name))
            _times(lambda one: ask(_vaa_path(one)), asked.vaas[:WARM_UP])
            found[f"{backend} vaa"] = _times(lambda one: ask(_vaa_path(one)), asked.vaas)
    found["duckdb"] = _bare_duckdb(asked)
    found["driver"] = _bare_cassandra(settings, asked)
    found["bigtable"] = _bare_bigtable(settings, asked)
    for name, times in found.items():
        say(f"{name}: p50 {statistics.median(times):.2f} ms, p99 {_p99(times):.2f} ms")
    return found


def _figures(found: dict[str, list[float]], days: int, blocks: int, held: int, load: float) -> list[dict]:
    lake = f"a lake of {days} days and {blocks:,} messages"

    def figure(name: str, ours: str, peer: str, peer_name: str, **more: object) -> dict:
        middle, other = statistics.median(found[ours]), statistics.median(found[peer])
        return {
            "name": name,
            "unit": "ms at the median (less is better)",
            "ours": round(middle, 2),
            "peer": round(other, 2),
            "peer_name": peer_name,
            "ratio": round(other / middle, 3),
            "p99_ms": round(_p99(found[ours]), 2),
            "peer_p99_ms": round(_p99(found[peer]), 2),
            "above_the_peer_ms": round(middle - other, 2),
            "requests": len(found[ours]),
            "load_before": round(load, 2),
            **more,
        }

    driver = "the bare Cassandra driver, the same rows"
    return [
        figure(f"block by id over HTTP from {lake}", "lake", "driver", driver, target="p50 5, p99 15"),
        figure(
            f"block by id over HTTP from {lake}",
            "lake",
            "duckdb",
            "bare DuckDB that knows file and milestone",
        ),
        figure(
            f"block by id over HTTP from Cassandra, which holds {held:,} of them",
            "stores",
            "driver",
            driver,
            target="2 above the driver",
        ),
        figure(
            "signed VAA by id over HTTP from Bigtable",
            "stores vaa",
            "bigtable",
            "Google's bare client, the same rows",
            target="3 above the client",
            from_the_lake_ms=round(statistics.median(found["lake vaa"]), 2),
        ),
        figure(f"block of day {days}, from the lake", "lake late", "lake early", "a block of day 5"),
    ]


def _p99(times: Sequence[float]) -> float:
    return statistics.quantiles(times, n=100)[98]


def _times(ask: Callable[[Any], object], items: Sequence[Any]) -> list[float]:
    """Milliseconds of each request, one after another."""
    return [timed(lambda: ask(one)) * 1000 for one in items]  # noqa: B023


def _block_path(one: StoredBlock) -> str:
    return f"/{NETWORK}/api/core/v2/blocks/0x{one.message_id}"


def _vaa_path(sequence: int) -> str:
    return f"/wormhole/v1/signed_vaa/{CHAIN}/{EMITTER}/{sequence}"


def _bare_duckdb(asked: _Asked) -> list[float]:
    with duckdb.connect() as connection:
        connection.execute("SET parquet_metadata_cache = true")
        sql = "SELECT message FROM read_parquet($file) WHERE milestone_index = $index AND message_id = $id"

        def read(one: StoredBlock) -> None:
            bound = {"file": one.file, "index": one.milestone_index, "id": one.message_id}
            assert connection.execute(sql, bound).fetchone()

        _times(read, asked.warm)
        return _times(read, asked.any)


def _bare_cassandra(settings: Settings, asked: _Asked) -> list[float]:
    with cassandra.session(settings.cassandra, plain=True) as session:
        statement = session.prepare(SELECT)

        def read(one: StoredBlock) -> None:
            assert session.execute(statement, [one.message_id]).one()

        _times(read, asked.warm)
        return _times(read, asked.any)


def _bare_bigtable(settings: Settings, asked: _Asked) -> list[float]:
    from google.cloud.bigtable.data import BigtableDataClient

    own = settings.bigtable
    with BigtableDataClient(project=own.project) as client:
        table = client.get_table(own.instance, own.table)

        def read(sequence: int) -> None:
            assert table.read_row(serve_lake.row_key(sequence).encode())

        _times(read, asked.vaas[:WARM_UP])
        return _times(read, asked.vaas)


@contextmanager
def _api(folder: Path, backend: str) -> Iterator[Callable[[str], bytes]]:
    """A server in a process of its own; yields what asks it for a path and returns the answer's body."""
    port = free_port()
    command = [str(Path(sys.executable).with_name("permalake")), "serve", "--port", str(port)]
    environment = {
        **os.environ,
        "PERMALAKE_CONFIG": str(folder / "permalake.toml"),
        "PERMALAKE_HOME": str(folder / "home"),
        "PERMALAKE_SERVE__BACKEND": backend,
    }
    began = time.monotonic()
    process = subprocess.Popen(command, env=environment, stdout=2)
    try:
        connection = _connected(port, process)
        say(f"{backend}: answers after {time.monotonic() - began:.0f} s")
        at_rest(process.pid)

        def ask(path: str) -> bytes:
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read()
            assert answer.status == 200, (path, answer.status, body)
            return body

        yield ask
    finally:
        process.terminate()
        process.wait()


def _connected(port: int, process: subprocess.Popen) -> http.client.HTTPConnection:
    while process.poll() is None:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        try:
            connection.request("GET", "/health")
            if connection.getresponse().read() == b"":
                return connection
        except ConnectionError:
            time.sleep(0.2)
    raise RuntimeError("the server ended; its output says why")


if __name__ == "__main__":
    print(json.dumps(run(*map(int, sys.argv[1:])), indent=1))
