"""``permalake serve`` with several workers: one port, one set of figures, no request lost with a worker."""

from __future__ import annotations

import asyncio
import csv
import http.client
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest

from permalake.api import workers
from permalake.api.shared_counts import METRICS_FOLDER, RATES_FILE, RateLimit, forget_worker
from permalake.api.workers import shared
from permalake.config import Settings
from permalake.local.services.daemon import free_port
from support import lakes
from support.length import LONG
from support.load_client import Connection

PERMALAKE = Path(sys.executable).with_name("permalake")
WORKERS, CLIENTS = 3, 4
READ_WORKERS = 4 if LONG else 2
LOAD_SECONDS = 600 if LONG else 4
PUBLISH_SECONDS = 20 if LOAD_SECONDS > 100 else 1
PATH = "/api/analytics/v1/shimmer/ms_analytics?start=2022-09-28&end=2022-09-28"


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    networks = {lakes.NETWORK: {"protocol": "stardust", "bech32_hrp": "smr", "path": "."}}
    folder = tmp_path_factory.mktemp("workers")
    settings = Settings(lake={"warehouse": str(folder / "lake")}, networks=networks)  # type: ignore[arg-type]
    lakes.build(settings, lakes.OpenLake(settings), lakes.DAY1, 1, 3, "first")
    return settings


@contextmanager
def serving(settings, folder, *arguments, **environment):
    """A server; its supervisor and its port."""
    port = free_port()
    command = [PERMALAKE, "serve", "--port", str(port), *arguments]
    variables = {
        **os.environ,
        "PERMALAKE_HOME": str(folder),
        "PERMALAKE_LAKE__WAREHOUSE": settings.lake.warehouse,
        "TMPDIR": str(folder),
        **environment,
    }
    with subprocess.Popen(command, env=variables, cwd=folder, stderr=subprocess.DEVNULL) as process:
        try:
            supervisor = psutil.Process(process.pid)
            _until(lambda: _ask(port, "/health") == 200 and len(workers_of(supervisor)) > 0)
            yield supervisor, port
        finally:
            process.terminate()
            process.wait(120)


def _until(condition, seconds=240):
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        try:
            if condition():
                return
        except (OSError, http.client.HTTPException):
            pass
        time.sleep(0.1)
    pytest.fail("it took too long")


def _ask(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


def workers_of(supervisor):
    found = []
    for child in supervisor.children():
        with suppress(psutil.Error):  # ended meanwhile
            if "spawn_main" in " ".join(child.cmdline()):
                found.append(child)
    return found


class Load:
    """Clients that ask again and again, each request on a connection of its own."""

    def __init__(self, port, path):
        self.answers, self.failed = Counter(), []
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(port, path)) for _ in range(CLIENTS)]

    def _run(self, port, path):
        while not self._ended.is_set():
            began = time.monotonic()
            try:
                self.answers[_ask(port, path)] += 1
            except (OSError, http.client.HTTPException) as error:
                self.failed.append((began, time.monotonic(), error))
            time.sleep(0.1)

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        for thread in self._threads:
            thread.join()


def counted(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    found = re.findall(r'^permalake_http_requests_total\{.*status="200"\} ([0-9.]+)$', text, re.MULTILINE)
    return sum(float(number) for number in found)


def test_neither_a_killed_worker_nor_the_end_costs_a_request_of_others(settings, tmp_path) -> None:
    with serving(settings, tmp_path, "--workers", str(WORKERS)) as (supervisor, port):
        _until(lambda: len(workers_of(supervisor)) == WORKERS)
        before = counted(port)
        with Load(port, PATH) as load:
            _until(lambda: load.answers[200] > 100)
            victim = workers_of(supervisor)[0]
            killed_at = time.monotonic()
            victim.kill()
            _until(lambda: victim not in workers_of(supervisor))
            gone_at = time.monotonic()
            _until(lambda: len(workers_of(supervisor)) == WORKERS)
            since = sum(load.answers.values())
            _until(lambda: sum(load.answers.values()) > since + 100)
        assert set(load.answers) == {200}
        # Those that the worker was answering, at most one of each client.
        assert len(load.failed) <= CLIENTS
        assert all(began <= gone_at and killed_at <= ended for began, ended, _ in load.failed)
        # What the dead worker had counted stays, and the others' is added.
        assert counted(port) >= before + load.answers[200]
        assert "gauge" not in [file.name for file in tmp_path.glob(f"permalake-workers-*/*_{victim.pid}.db")]
        workers = workers_of(supervisor)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", PATH)
        supervisor.send_signal(signal.SIGTERM)
        assert connection.getresponse().status in (200, 503), "it finishes what it has begun"
        _, alive = psutil.wait_procs([supervisor, *workers], timeout=60)
        assert alive == []
    assert list(tmp_path.glob("permalake-workers-*")) == []


class _Reader:
    """Asks for a range of two days, which every publication replaces together, in all its forms."""

    def __init__(self, port, until):
        self._client = Connection("127.0.0.1", port)
        self._until = until
        self.counts, self.statuses, self.wrong = set(), Counter(), []

    async def run(self):
        # A machine that is busy may not have shown it a second publication by then, or only a few answers.
        while (now := time.monotonic()) < self._until or (self._has_few() and now < self._until + 120):
            for path, read in _FORMS.items():
                answer = await self._client.get(path)
                self.statuses[answer.status] += 1
                if answer.status == 503 and int(answer.headers["retry-after"]) > 0:
                    continue
                counts = read(bytes(answer.body)) if answer.status == 200 else answer.status
                if answer.status != 200 or len(counts) != 2 or counts[0] != counts[1]:
                    self.wrong.append((path, answer.status, counts))
                else:
                    self.counts.add(counts[0])
        self._client.close()

    def _has_few(self):
        return len(self.counts) < 2 or self.statuses[200] < 15


_RANGE = "/api/analytics/v1/shimmer/ms_analytics?start=2022-09-28&end=2022-09-29"
_FORMS = {
    _RANGE: lambda body: [int(row["message_count"]) for row in json.loads(body)["items"]],
    f"{_RANGE}&format=csv": lambda body: [
        int(row["message_count"]) for row in csv.DictReader(body.decode().splitlines())
    ],
    f"{_RANGE}&format=parquet": lambda body: [
        int(count) for count in pq.read_table(io.BytesIO(body))["message_count"].to_pylist()
    ],
}


def _publish(settings, lake, number):
    """Replace two days in one publication: every milestone has ``number`` messages."""
    attempt = lake.begin(lakes.NETWORK, lakes.DAY1, lakes.DAY2, f"load-{number}")
    days = ((lakes.DAY1, 1), (lakes.DAY2, 2))
    for table, rows in (("messages", lakes.messages), ("ms_analytics", lakes.analytics)):
        content = [row for day, milestone in days for row in rows(day, milestone, number)]
        lakes.put(settings, attempt, table, content)
    lakes.put(settings, attempt, "date_cache", [row for day, at in days for row in lakes.cache(day, at, at)])
    lake.builds.publish(lakes.pass_audit(attempt))


@pytest.mark.scaled
def test_every_answer_is_of_one_publication_while_others_follow(tmp_path) -> None:
    networks = {lakes.NETWORK: {"protocol": "stardust", "bech32_hrp": "smr", "path": "."}}
    settings = Settings(lake={"warehouse": str(tmp_path / "lake")}, networks=networks)
    lake = lakes.OpenLake(settings)
    _publish(settings, lake, 1)
    with serving(settings, tmp_path, "--workers", str(READ_WORKERS)) as (supervisor, port):
        _until(lambda: len(workers_of(supervisor)) == READ_WORKERS)
        readers = [_Reader(port, time.monotonic() + LOAD_SECONDS) for _ in range(CLIENTS)]

        async def read():
            await asyncio.gather(*(reader.run() for reader in readers))

        thread = threading.Thread(target=asyncio.run, args=(read(),))
        thread.start()
        number = 1
        while thread.is_alive():
            number += 1
            _publish(settings, lake, number)
            thread.join(PUBLISH_SECONDS)
        statuses = sum((reader.statuses for reader in readers), Counter())
        wrong = [one for reader in readers for one in reader.wrong]
        assert not wrong, wrong[:5]
        assert set(statuses) <= {200, 503}
        assert statuses[200] > 100
        seen = {count for reader in readers for count in reader.counts}
        assert len(seen) > 1
        assert seen <= set(range(1, number + 1))
        # Every worker comes to serve the last one.
        _until(lambda: {_count(port) for _ in range(40)} == {number})


def _count(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", _RANGE)
    first, second = _FORMS[_RANGE](connection.getresponse().read())
    connection.close()
    assert first == second
    return first


def test_workers_end_with_a_supervisor_that_was_killed(settings, tmp_path) -> None:
    with serving(settings, tmp_path, "--workers", "2") as (supervisor, _):
        workers = workers_of(supervisor)
        supervisor.kill()
        _, alive = psutil.wait_procs(workers, timeout=60)
        assert alive == []


def test_a_client_s_rate_counts_over_all_workers(settings, tmp_path) -> None:
    with serving(settings, tmp_path, "--workers", "2", PERMALAKE_SERVE__RATE_PER_MINUTE="40") as (_, port):
        began = time.monotonic()
        answers = Counter(_ask(port, PATH) for _ in range(80))
        refilled = (time.monotonic() - began) * 40 / 60
    assert 20 <= answers[200] <= 42 + refilled
    assert set(answers) == {200, 429}


def test_workers_share_what_the_limits_allow(settings) -> None:
    serve = shared(settings, 4).serve
    assert (serve.concurrency, serve.queue, serve.connections) == (16, 64, 256)
    assert (serve.lake_pool, shared(settings, 300).serve.concurrency) == (2, 1)


def test_two_processes_of_one_file_count_together(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv(RATES_FILE, str(tmp_path / "rates"))
    one, other = RateLimit(2), RateLimit(2)
    assert [one.wait("a", 0.0), other.wait("a", 0.0)] == [0.0, 0.0]
    assert one.wait("a", 0.0) == other.wait("a", 0.0) == 30.0
    assert other.wait("b", 0.0) == 0.0
    assert one.wait("a", 30.0) == 0.0


def test_a_dead_worker_s_gauges_go_and_its_counters_stay(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv(METRICS_FOLDER, str(tmp_path))
    for name in ("gauge_livesum_7.db", "counter_7.db", "gauge_livesum_8.db"):
        (tmp_path / name).touch()
    forget_worker(7)
    assert {file.name for file in tmp_path.iterdir()} == {"counter_7.db", "gauge_livesum_8.db"}


@pytest.mark.parametrize(
    ("quota", "cores"), [("max 100000", 8), ("150000 100000", 2), ("50000 100000", 1), ("1600000 100000", 8)]
)
def test_a_container_s_quota_bounds_the_workers(monkeypatch, tmp_path, quota, cores) -> None:
    file = tmp_path / "cpu.max"
    file.write_text(f"{quota}\n")
    monkeypatch.setattr(workers, "_QUOTA", file)
    monkeypatch.setattr(workers.os, "sched_getaffinity", lambda _: set(range(8)))
    assert workers.usable_cores() == cores
    file.unlink()
    assert workers.usable_cores() == 8
