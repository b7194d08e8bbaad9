"""The live head of Wormhole: how long a VAA takes from its arrival to its readers, and what it costs.

``python -m bench.live [SECONDS RATE]``: synthetic VAAs are added to a file at a steady rate, which
``permalake live wormhole`` follows. A VAA has arrived once its line is written. It is in the lake once the
batch with it is committed, by the position that the commit itself records, and in Bigtable, a real emulator,
once the tables there have what the head has. The long run has 3600 seconds.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from bench.bigtable import emulator
from bench.machine import say, watch
from bench.simulated import COMMAND, simulated
from permalake.config import load_settings
from permalake.contracts.namespaces import live_namespace
from permalake.errors import PermalakeError
from permalake.lake.catalog import locations
from permalake.lake.database import Database
from permalake.lake.head_position import last_reached
from permalake.lake.identity import open_database
from permalake.lake.state import LIVE
from permalake.stores import served
from permalake.wormhole.events.store import BigtableStore

TARGET_SECONDS = 10.0
_NETWORK = "wormhole"
_START_SECONDS, _MOST_TIMES = 90.0, 5
"""How long the head may take: for the first line, which does not count, and for the others as many times as
long as they come."""
_CONFIG = """
[lake]
warehouse = "{lake}"
[live]
days = 31
poll_seconds = 0.5
[wormhole]
path = "{path}"
reference = "{reference}"
[prices]
provider = "file"
path = "{prices}"
[bigtable]
project = "bench"
instance = "bench"
table = "v2"
table_v1 = "v1"
"""


def run(seconds: float = 120.0, rate: float = 50.0) -> list[dict]:
    """Lag of VAAs (p50, p99) at ``rate`` a second, and processor seconds of each."""
    count = math.ceil(seconds * rate)
    world = simulated(f"live-{count}", "wormhole", "--messages", str(count), "--days", "1", "--seed", "11")
    lines = _lines(world)[:count]
    with emulator(), tempfile.TemporaryDirectory(prefix="bench-live-") as folder:
        place = Path(folder)
        (place / "input").mkdir()
        config = place / "permalake.toml"
        paths = {"lake": place / "lake", "path": place / "input", "reference": world / "reference"}
        config.write_text(_CONFIG.format(**paths, prices=world / "price_history.csv"))
        following = _followed(place / "input" / "vaas.jsonl", config, lines, rate)
    figures = []
    for where, seen in (("the lake", following.committed), ("Bigtable", following.stored)):
        lags = sorted(following.lags(seen))
        half, most = statistics.median(lags), lags[math.ceil(len(lags) * 0.99) - 1]
        say(f"live: {len(lags)} VAAs at {rate:g}/s: in {where} after {half:.1f} s, p99 {most:.1f} s")
        figures += [
            lag_figure(f"a VAA until readers of {where} see it, at {rate:g}/s: median", half, TARGET_SECONDS),
            lag_figure(f"a VAA until readers of {where} see it, at {rate:g}/s: p99", most, TARGET_SECONDS),
        ]
    cpu_seconds = following.cpu_seconds()
    return [*figures, cost_figure("a VAA", cpu_seconds / count, rate)]


def lag_figure(name: str, lag: float, target: float) -> dict:
    """A lag beside the target; seconds."""
    return {
        "name": name,
        "unit": "s (less is better)",
        "ours": round(lag, 2),
        "peer": target,
        "peer_name": "the target",
        "ratio": round(target / lag, 2),
    }


def cost_figure(item: str, cpu_seconds: float, rate: float) -> dict:
    """The processor seconds of each item beside what two cores have for it at a rate a second."""
    return {
        "name": f"processor time of {item} in the live head, at {rate:g}/s",
        "unit": "ms (less is better)",
        "ours": round(1000 * cpu_seconds, 1),
        "peer": round(2000 / rate, 1),
        "peer_name": "two cores, all of their time",
        "ratio": round(2 / rate / cpu_seconds, 2),
    }


def _lines(world: Path) -> list[bytes]:
    """Lines of a simulated source that hold a VAA."""
    found = []
    for file in sorted((world / "vaas").rglob("*.jsonl*")):
        data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        found += [line + b"\n" for line in data.splitlines() if "vaa" in json.loads(line)]
    return found


class _Following:
    """What came when, what readers saw when, and the processor seconds until then; times are monotonic."""

    def __init__(self, file: Path, lines: Sequence[bytes], rate: float) -> None:
        self._file, self._lines, self._rate = file, lines, rate
        self._end = sum(map(len, lines))
        self.arrivals: list[tuple[int, float]] = []
        self.committed: list[tuple[int, float]] = []
        self.stored: list[tuple[int, float]] = []
        self.used: list[tuple[float, float]] = []
        self.ended = threading.Event()

    def add(self) -> None:
        """Write the lines, each at its time, once the first one is committed."""
        first, *rest = self._lines
        with self._file.open("ab", buffering=0) as sink:
            sink.write(first)
            while not self.committed:
                time.sleep(0.1)
            began, end = time.monotonic(), len(first)
            for number, line in enumerate(rest):
                time.sleep(max(began + number / self._rate - time.monotonic(), 0))
                sink.write(line)
                end += len(line)
                self.arrivals.append((end, time.monotonic()))

    def look(self) -> None:
        """Note how far the head and the store are, whenever they have moved."""
        while not self.ended.wait(0.1):
            try:
                database = open_database(load_settings())
                reached = last_reached(database, _NETWORK)
                is_stored = _is_stored(database)
            except PermalakeError:
                continue
            mark = (reached.source or {}).get(self._file.name) if reached else None
            if not mark:
                continue
            for seen in [self.committed, self.stored] if is_stored else [self.committed]:
                if not seen or seen[-1][0] < mark[1]:
                    seen.append((mark[1], time.monotonic()))

    def note(self, cpu_seconds: float, _: object) -> bool:
        """Note the processor seconds; return whether readers have all lines."""
        self.used.append((time.monotonic(), cpu_seconds))
        return bool(self.stored) and self.stored[-1][0] >= self._end

    def lags(self, seen: Sequence[tuple[int, float]]) -> list[float]:
        """Return the seconds from each line's arrival until it was seen."""
        if not seen or seen[-1][0] < self.arrivals[-1][0]:
            raise PermalakeError("the head did not take all VAAs; see its log above")
        found, at = [], 0
        for end, arrived in self.arrivals:
            while seen[at][0] < end:
                at += 1
            found.append(seen[at][1] - arrived)
        return found

    def cpu_seconds(self) -> float:
        """Return the processor seconds from the first arrival to the last commit."""
        first, last = self.arrivals[0][1], self.stored[-1][1]
        within = [cpu for moment, cpu in self.used if first <= moment <= last]
        return within[-1] - within[0]


def _is_stored(database: Database) -> bool:
    """Return whether the store has what the head has at this moment."""
    with database.read() as connection:
        at = locations(connection, LIVE, live_namespace(_NETWORK))
        noted = served.provisional(connection, _NETWORK, BigtableStore.name)
    return bool(noted) and all(
        len(states) == 1 and all(at.get(name) == place for name, place in states[0].items())
        for states in noted.values()
    )


def _followed(file: Path, config: Path, lines: Sequence[bytes], rate: float) -> _Following:
    """What came while lines were added at a rate, and what was seen of them."""
    os.environ["PERMALAKE_CONFIG"] = str(config)
    following = _Following(file, lines, rate)
    for work in (following.add, following.look):
        threading.Thread(target=work, daemon=True).start()
    length = _START_SECONDS + _MOST_TIMES * len(lines) / rate
    watch([COMMAND, "live", "wormhole", "--for", f"{length:.0f}"], dict(os.environ), following.note)
    following.ended.set()
    return following


if __name__ == "__main__":
    print(json.dumps(run(*map(float, sys.argv[1:])), indent=1))
