"""Many clients at once, every fifth request malformed: no errors of the server, flat memory, bounded waits.

Ten minutes in ``make long``, seconds in ``make test``.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from support import synthetic_lake
from support.length import LONG
from support.load_client import Answer, Connection

pytestmark = pytest.mark.scaled

WARM_SECONDS, SECONDS = (150, 450) if LONG else (4, 8)
CLIENTS, EVERY = 64, 5
TIMEOUT = 15
GROWTH = 96 << 20
"""Bytes that each process of the server may grow by once it is warm."""
C1, C2, W = "/iota/api/v1", "/shimmer/api/core/v2", "/wormhole/api/v1"
MALFORMED = (
    f"{C2}/blocks/0x12",
    f"{C2}/blocks/%00",
    f"{C2}/milestones/by-index/-1",
    f"{C2}/outputs/{'zz' * 34}",
    f"{C1}/messages?index=",
    f"{C1}/messages?index={'ab' * 65}",
    f"{C1}/addresses/smr1qqqqqq",
    "/shimmer/api/indexer/v1/outputs/basic?pageSize=0",
    "/shimmer/api/indexer/v1/outputs/basic?cursor=AAAA",
    "/shimmer/api/indexer/v1/outputs/basic?nosuch=1",
    "/shimmer/api/explorer/v2/ledger/richest-addresses?top=x",
    f"{W}/vaas/99999999/zz/1",
    f"{W}/operations?from=yesterday",
    "/wormhole/edb/totals?numDays=-1",
    "/api/analytics/v1/shimmer/ms_analytics?start=2022-02-31",
    "/api/analytics/v1/shimmer/nosuch",
    "/nosuch/health",
    f"/shimmer/api/routes?{'a' * 9000}",
)


@pytest.fixture(scope="module")
def wellformed(whole):
    """Paths of every kind of route, each of which is answered."""
    found = [f"{C2}/info", f"{C1}/info", "/health", "/shimmer/health", "/openapi.json"]
    stardust, chrysalis = synthetic_lake.tables("stardust"), synthetic_lake.tables("chrysalis")
    for row in stardust["messages"][::5]:
        found += [f"{C2}/blocks/0x{row['message_id']}", f"{C2}/blocks/{row['message_id']}/metadata"]
    for row in chrysalis["messages"][::5]:
        found += [f"{C1}/messages/{row['message_id']}", f"{C1}/messages/{row['message_id']}/children"]
    for row in stardust["milestones"]:
        index = row["milestone_index"]
        found += [f"{C2}/milestones/by-index/{index}/utxo-changes", f"{C2}/milestones/{row['milestone_id']}"]
        found += [f"/shimmer/api/explorer/v2/milestones/by-index/{index}/blocks?pageSize=7"]
    for row in stardust["basic_outputs"][::9]:
        found += [f"{C2}/outputs/{row['output_id']}"]
        found += [f"/shimmer/api/indexer/v1/outputs/basic?address={row['address']}"]
        found += [f"/shimmer/api/explorer/v2/balance/{row['address']}"]
    for row in chrysalis["legacy_outputs"][::9]:
        found += [f"{C1}/addresses/{row['address']}", f"{C1}/addresses/{row['address']}/tx-history"]
    for row in stardust["messages"][::50]:
        found += [f"/shimmer/api/poi/v1/create/0x{row['message_id']}"]
    for row in whole.wormhole_rows["message_publication"][::20]:
        name = f"{row['emitter_chain']}/{row['emitter_address']}/{row['sequence']}"
        found += [f"{W}/vaas/{name}", f"/api/wormhole/v1/events/{name}"]
    found += [f"{W}/operations?pageSize=10", f"{W}/scorecards", "/wormhole/edb/recent?numRows=5"]
    found += ["/api/wormhole/v1/recent?pageSize=20", "/api/wormhole/v1/totals"]
    found += [f"/api/analytics/v1/shimmer/ms_analytics?format={one}" for one in ("json", "csv", "parquet")]
    return found


@dataclass
class _Seen:
    """What the clients were answered: requests by kind and status, seconds by kind, and what was wrong."""

    counts: Counter = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def note(self, path: str, malformed: bool, answer: Answer, seconds: float) -> None:
        status = answer.status
        self.counts[malformed, status] += 1
        self.seconds.append(seconds)
        busy = status == 503 and int(answer.headers.get("retry-after", 0)) > 0
        expected = 400 <= status < 500 if malformed else status == 200
        if not (expected or busy):
            self.wrong.append(f"{status} {path[:200]} {bytes(answer.body[:200])!r}")


async def _client(address, paths, numbers, until, seen, seed):
    rng = random.Random(seed)
    where = urlsplit(address)
    client = Connection(where.hostname, where.port)
    for number in numbers:
        bad = number % EVERY == 0
        path = rng.choice(MALFORMED if bad else paths)
        began = time.monotonic()
        async with asyncio.timeout(20 * TIMEOUT):
            answer = await client.get(path)
        seen.note(path, bad, answer, time.monotonic() - began)
        if time.monotonic() > until:
            client.close()
            return


async def _load(address, paths, seconds, seen):
    until, numbers = time.monotonic() + seconds, itertools.count(1)
    clients = (_client(address, paths, numbers, until, seen, seed) for seed in range(CLIENTS))
    await asyncio.gather(*clients)


def _memory(server):
    return {process.pid: process.memory_info().rss for process in (server, *server.children())}


def _own_memory(server):
    """MiB of each process that no other shares and no file backs."""
    memory = [process.memory_info() for process in (server, *server.children())]
    return [round((size.rss - size.shared) / 2**20) for size in memory]


def test_many_clients_with_malformed_requests(whole, wellformed, capsys) -> None:
    server = psutil.Process(whole.pid)
    warm, seen = _Seen(), _Seen()
    asyncio.run(_load(whole.address, wellformed, WARM_SECONDS, warm))
    before = _memory(server)
    asyncio.run(_load(whole.address, wellformed, SECONDS, seen))
    after = _memory(server)
    seen.seconds.sort()
    worst, p99 = seen.seconds[-1], seen.seconds[len(seen.seconds) * 99 // 100]
    with capsys.disabled():
        mib = [[round(size / 2**20) for size in sizes.values()] for sizes in (before, after)]
        print(
            f"\n{CLIENTS} clients, {len(seen.seconds) / SECONDS:.0f} requests/s: "
            f"{dict(sorted(seen.counts.items()))}, "
            f"p50 {seen.seconds[len(seen.seconds) // 2]:.3f} s, p99 {p99:.3f} s, worst {worst:.3f} s, "
            f"MiB {mib}, without mapped files {_own_memory(server)}"
        )
    assert not warm.wrong, warm.wrong[:10]
    assert not seen.wrong, seen.wrong[:10]
    assert seen.counts[False, 200] > CLIENTS
    malformed = sum(count for (bad, _), count in seen.counts.items() if bad)
    assert malformed == pytest.approx(seen.counts.total() / EVERY, abs=1)
    assert worst < TIMEOUT + 1
    assert all(after[pid] - before[pid] < GROWTH for pid in before)
    assert httpx.get(f"{whole.address}/health").status_code == 200
