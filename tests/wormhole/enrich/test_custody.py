"""Custody from RPCs behind the lake's table: what is asked, kept and remarked."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from permalake.config import Settings
from permalake.config.lake import LakeSettings
from permalake.config.networks import WormholeSettings
from permalake.config.services import ChainSettings
from permalake.net.http import RetryPolicy
from permalake.pipeline.day_landing import DayLanding
from permalake.wormhole.contracts.custody_tables import TOKEN_CUSTODY
from permalake.wormhole.enrich.custody import Custody
from permalake.wormhole.enrich.rpcs import opened
from permalake.wormhole.reference import load_reference
from permalake.wormhole.steps.answer_caches import answer_cache
from support.lakes import OpenLake
from support.rpc_server import EvmChain, RpcServer

FIRST, DAY = dt.date(2024, 3, 14), dt.date(2024, 3, 18)
DAYS = [FIRST + dt.timedelta(days=n) for n in range(5)]
MIDNIGHT = int(dt.datetime(2024, 3, 19, tzinfo=dt.UTC).timestamp())
LAST = 9_000_000 - 1
A_DAY = 86_400 // 12
PATIENT = RetryPolicy(read=3, back_off=0.01, attempts=12, longest_pause=3)
IMPATIENT = RetryPolicy(read=3, back_off=0.01, attempts=2, longest_pause=0, failures=2, rest=0.2)
HELD = pa.schema([("date", pa.date32()), ("origin_chain", pa.int32()), ("origin_address", pa.string())])
WETH, USDC = "0x" + "c0" * 20, "0x" + "a0" * 20
LATER = "fill in later with --only enrich"
FORGOTTEN = "the node cannot read that block, an archive node can (JSON-RPC error -32000)"


def word(address):
    return "00" * 12 + address[2:]


class Desk:
    """An attempt of a lake, and what is asked of it."""

    def __init__(self, spark, folder):
        self.spark = spark
        self.settings = Settings(
            lake=LakeSettings(warehouse=str(folder)), wormhole=WormholeSettings(path=folder)
        )
        self.lake = OpenLake(self.settings)
        self.attempt = self.lake.begin("wormhole", FIRST, DAY, "run")
        self.notes = []
        self.cache = answer_cache(
            spark, self.attempt, TOKEN_CUSTODY, lambda text, day=None: self.notes.append((text, day))
        )
        self.days = DayLanding.of(spark, self.attempt)

    def ask(self, server, held, *, retry_policy=PATIENT, seconds=None, days=(FIRST, DAY)) -> None:
        sections = {2: ChainSettings(rpc_url=f"{server.url}/2", rate_per_second=500)}
        rows = pa.table(dict(zip(HELD.names, zip(*held, strict=True), strict=True)), HELD)
        with opened(self.settings.model_copy(update={"chains": sections}), retry_policy) as nodes:
            Custody(nodes, self.cache, seconds=seconds).ask(self.days, rows, days)

    def kept(self):
        rows = self.cache.read(dt.date.min, dt.date.max).to_table().to_pylist()
        return sorted(rows, key=lambda row: (row["date"], row["origin_address"], row["asked_at"]))

    def told(self):
        names = ("date", "origin_address", "status", "amount")
        return [tuple(row[name] for name in names) for row in self.kept()]


@pytest.fixture
def world():
    chain = load_reference().chains[2]
    found = EvmChain(chain.core, f"0x{chain.token_bridge[24:]}", first=MIDNIGHT - 12 * (LAST + 1))
    found.last_block = LAST + 100
    found.tokens = {WETH: ("WETH", "Wrapped Ether", 18), USDC: ("USDC", "USD Coin", 6)}
    found.held = {
        WETH: {LAST - (4 - n) * A_DAY: (n + 1) * 10**18 for n in range(5)},
        USDC: {1: 2_500_000},
    }
    found.outstanding = {WETH: {1: 10**8}}
    return found


@pytest.fixture
def desk(spark, tmp_path):
    return Desk(spark.newSession(), tmp_path)


WHOLE = [(day, 2, word(token)) for day in DAYS for token in (WETH, USDC)]


def test_balances_are_asked_for_once(desk, world) -> None:
    held = [*WHOLE, (DAY, 1, "77" * 32), (DAY + dt.timedelta(days=1), 2, word(WETH))]
    with RpcServer({2: world}, faulty=0.1, errors=0.1, seed=3) as server:
        desk.ask(server, WHOLE[:6])
        assert len(desk.kept()) == 6
        desk.ask(server, held)
        requests = len(server.requests[2])
        desk.ask(server, held)
        assert len(server.requests[2]) == requests
    assert desk.told() == [
        row
        for n, day in enumerate(DAYS)
        for row in ((day, word(USDC), "known", "2.5"), (day, word(WETH), "known", str(n + 1)))
    ]
    row = desk.kept()[-1]
    assert row.pop("asked_at").year > 2024
    assert row == {
        "origin_chain": 2,
        "origin_address": word(WETH),
        "status": "known",
        "block": LAST,
        "decimals": 18,
        "balance": "5000000000000000000",
        "amount": "5",
        "outstanding": "1",
        "reason": None,
        "date": DAY,
    }
    assert desk.notes == []


def test_what_is_missing_is_asked_for_again_and_nothing_else(desk, world) -> None:
    """A pruned node tells the newest day; an archive node, later, the others."""
    world.oldest_state = LAST
    with RpcServer({2: world}) as server:
        desk.ask(server, WHOLE)
        states = [(row["date"], row["status"], row["reason"], row["balance"] is None) for row in desk.kept()]
        assert states == [
            *((day, "unknown", FORGOTTEN, True) for day in DAYS[1:4] for _ in range(2)),
            *[(DAY, "known", None, False)] * 2,
        ]  # after three days the node is left alone
        missing = f"custody: {FORGOTTEN}; balances on chain 2 that are not known: 8, {LATER}"
        assert desk.notes == [(missing, None)]
        desk.ask(server, WHOLE)
        assert len(desk.kept()) == 8

        world.oldest_state = 0
        server.answered.clear()
        desk.ask(server, WHOLE)
        asked = [call for call in server.answered[2] if "70a08231" in call]
        assert len(asked) == 8
    known = [row for row in desk.told() if row[2] == "known"]
    assert [row[3] for row in known] == [amount for n in range(5) for amount in ("2.5", str(n + 1))]
    assert len(desk.kept()) == 10 + 6


def test_a_contract_without_a_balance_is_asked_once(desk, world) -> None:
    world.held[USDC] = {1: None}
    with RpcServer({2: world}) as server:
        desk.ask(server, WHOLE[-2:])
        requests = len(server.requests[2])
        desk.ask(server, WHOLE[-2:])
        assert len(server.requests[2]) == requests
    assert desk.told() == [(DAY, word(USDC), "none", None), (DAY, word(WETH), "known", "5")]
    assert desk.kept()[0]["reason"] == "JSON-RPC error 3"
    assert desk.notes == []


def test_a_node_that_is_down_leaves_balances_unknown(desk, world) -> None:
    with RpcServer({2: world}) as server:
        server.down = "503"
        desk.ask(server, WHOLE[-2:], retry_policy=IMPATIENT)
        why = "chain 2: HTTP 503"
        assert desk.told() == [(DAY, word(token), "unknown", None) for token in (USDC, WETH)]
        assert {row["reason"] for row in desk.kept()} == {why}
        assert desk.notes == [(f"custody: {why}; balances on chain 2 that are not known: 2, {LATER}", None)]
        server.down = None
        desk.ask(server, WHOLE[-2:])
    assert desk.told()[1] == (DAY, word(USDC), "known", "2.5")
    assert len(desk.kept()) == 4


def test_when_time_is_up_no_further_day_is_begun(desk, world) -> None:
    with RpcServer({2: world}) as server:
        desk.ask(server, WHOLE, seconds=0)
    assert desk.told() == [(DAY, word(USDC), "known", "2.5"), (DAY, word(WETH), "known", "5")]
    assert desk.notes == [
        (f"custody: no time left; balances on chain 2 that are not known: 8, {LATER}", None)
    ]
