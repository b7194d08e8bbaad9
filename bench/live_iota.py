"""The live head of an IOTA network: how long a milestone takes from its node to its readers, and its cost.

A node on this machine, in a process of its own, confirms a milestone of a synthetic tangle every ten seconds,
and has the messages of the next one by then. ``permalake live iota`` follows it, and writes what it adds into
a real Cassandra too. A milestone is there once the batch with it is committed. The long run is
``run(seconds=3600, rate=200)``.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.live import cost_figure, lag_figure
from bench.machine import say, watch
from bench.simulated import COMMAND, simulated
from permalake.config import load_settings
from permalake.errors import PermalakeError
from permalake.iota.permanode.chrysalis_schema import keyspace_of
from permalake.lake.head_position import last_reached
from permalake.lake.identity import open_database
from permalake.local.services import control
from permalake.local.services.cassandra import Cassandra
from permalake.local.services.daemon import free_port
from permalake.paths import HOME, ROOT
from permalake.spark import jars
from permalake.stores import cassandra

sys.path.append(str(ROOT / "tests"))
from support.node_server import NodeServer

TARGET_SECONDS = 20.0
"""For 50 messages a second on two cores."""
SECONDS_A_MILESTONE = 10
_NETWORK = "bench"
_START_SECONDS, _MOST_TIMES = 105.0, 5
"""How long the head may take: to begin, and as many times as long as the messages come."""
_CONFIG = """
[lake]
warehouse = "{lake}"
[live]
days = 31
poll_seconds = 0.5
[cassandra]
contact_points = ["127.0.0.1"]
port = {port}
[networks.bench]
protocol = "stardust"
bech32_hrp = "smr"
source = "node"
url = "{url}"
rate_per_second = 2000.0
coordinator_threshold = 2
coordinator_public_keys = {keys}
"""


def run(seconds: float = 120.0, rate: float = 50.0) -> list[dict]:
    """Lag of milestones (p50, p99) at ``rate`` messages a second, and what a message costs."""
    milestones = math.ceil(seconds / SECONDS_A_MILESTONE)
    messages = round(milestones * SECONDS_A_MILESTONE * rate)
    size = ("--messages", str(messages), "--milestones-per-day", str(milestones), "--no-gzip")
    world = simulated(f"live-iota-{messages}-{milestones}", "iota", *size)
    keys = re.search(r"^coordinator_public_keys = (.*)$", (world / "network.toml").read_text(), re.MULTILINE)
    # A run takes over what one before it has fetched from a network of this name.
    shutil.rmtree(HOME / "landing" / _NETWORK, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="bench-live-") as folder, _cassandra(Path(folder)) as port:
        with _node(world) as node:
            config = Path(folder) / "permalake.toml"
            place = {
                "lake": f"{folder}/lake",
                "port": port,
                "url": node.url,
                "keys": keys[1] if keys else "[]",
            }
            config.write_text(_CONFIG.format(**place))
            os.environ["PERMALAKE_CONFIG"] = str(config)
            following = _Following(node)
            lags, cpu_seconds = following.measured(_START_SECONDS + _MOST_TIMES * seconds)
        writes = _writes()
    lags.sort()
    half, most = statistics.median(lags), lags[math.ceil(len(lags) * 0.99) - 1]
    say(f"live iota: {len(lags)} milestones at {rate:g} messages/s: lag {half:.1f} s, p99 {most:.1f} s")
    counted = len(lags) * SECONDS_A_MILESTONE * rate
    return [
        lag_figure(f"a milestone until readers see it, at {rate:g} messages/s: median", half, TARGET_SECONDS),
        lag_figure(f"a milestone until readers see it, at {rate:g} messages/s: p99", most, TARGET_SECONDS),
        cost_figure("a message", cpu_seconds / counted, rate),
        {
            "name": f"rows written into Cassandra for a message of the live head, at {rate:g}/s",
            "unit": "rows (less is better)",
            "ours": round(writes / messages, 2),
        },
    ]


class _Node:
    """A node in another process, which confirms one more milestone when it is told."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self._process = process
        told = json.loads(process.stdout.readline())
        self.url, self.first, self.last = told["url"], told["first"], told["last"]

    def confirm(self, milestone: int) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{milestone}\n")
        self._process.stdin.flush()


@contextmanager
def _node(world: Path) -> Iterator[_Node]:
    [day] = world.glob("*-*-*")
    command = [sys.executable, "-m", "bench.live_iota", "--node", str(day)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield _Node(process)
        finally:
            process.kill()


def _serve_node(world: Path) -> None:
    with NodeServer(world, "stardust") as server:
        last, first = max(server.milestones), min(server.milestones)
        server.confirmed = first
        print(json.dumps({"url": server.url, "first": first, "last": last}), flush=True)
        for line in sys.stdin:
            server.confirmed = int(line)
            server.arrive(int(line) + 1)


@contextmanager
def _cassandra(folder: Path) -> Iterator[int]:
    server = control.servers(free_port(), free_port(), folder / "services")["cassandra"]
    assert isinstance(server, Cassandra)
    jars.resolve(jars.STORE_COORDINATES)
    server.up()
    try:
        yield server.port
    finally:
        server.daemon.stop()


def _writes() -> int:
    """Return how many rows the server has written into the network's tables."""
    with cassandra.session(load_settings().cassandra) as connected:
        rows = connected.execute("SELECT keyspace_name, count FROM system_views.local_write_latency")
        return sum(row.count for row in rows if row.keyspace_name == keyspace_of(_NETWORK))


class _Following:
    """What was confirmed when, what was committed when, and the processor seconds until then."""

    def __init__(self, node: _Node) -> None:
        self._node = node
        self._confirmed: dict[int, float] = {}
        self._committed: list[tuple[int, float]] = []
        self._used: list[tuple[float, float]] = []
        self._ended = threading.Event()

    def measured(self, seconds: float) -> tuple[list[float], float]:
        """Follow to the end; return the seconds of each milestone, and the processor seconds of them all.

        ``seconds``: how long that may take.
        """
        for work in (self._confirm, self._look):
            threading.Thread(target=work, daemon=True).start()
        command = [COMMAND, "live", "iota", "--for", f"{seconds:.0f}"]
        watch(command, dict(os.environ), self._note)
        self._ended.set()
        if not self._committed or self._committed[-1][0] < self._node.last:
            raise PermalakeError("the head did not take all milestones; see its log above")
        lags = [
            next(moment for reached, moment in self._committed if reached >= milestone) - confirmed
            for milestone, confirmed in self._confirmed.items()
        ]
        first, last = min(self._confirmed.values()), self._committed[-1][1]
        within = [cpu for moment, cpu in self._used if first <= moment <= last]
        return lags, within[-1] - within[0]

    def _note(self, cpu_seconds: float, _: object) -> bool:
        """Note the processor seconds; return whether the head has all that there is."""
        self._used.append((time.monotonic(), cpu_seconds))
        return bool(self._committed) and self._committed[-1][0] >= self._node.last

    def _confirm(self) -> None:
        """Confirm each milestone at its time, once the first one is committed, which does not count."""
        while not self._committed:
            time.sleep(0.1)
        began = time.monotonic()
        for number, milestone in enumerate(range(self._node.first + 1, self._node.last + 1)):
            time.sleep(max(began + number * SECONDS_A_MILESTONE - time.monotonic(), 0))
            self._node.confirm(milestone)
            self._confirmed[milestone] = time.monotonic()

    def _look(self) -> None:
        """Note how far the head is, whenever it has moved."""
        while not self._ended.wait(0.1):
            try:
                reached = last_reached(open_database(load_settings()), _NETWORK)
            except PermalakeError:
                continue
            if reached and reached.index and (not self._committed or self._committed[-1][0] < reached.index):
                self._committed.append((reached.index, time.monotonic()))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--node"]:
        _serve_node(Path(sys.argv[2]))
    else:
        print(json.dumps(run(*map(float, sys.argv[1:])), indent=1))
