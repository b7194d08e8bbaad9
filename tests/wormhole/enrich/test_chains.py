"""RPCs behind the lake's cache: what is asked, what is kept with which reason, what is remarked."""

from __future__ import annotations

import datetime as dt
from collections import Counter

import pyarrow as pa
import pytest

from permalake.config import Settings
from permalake.config.lake import LakeSettings
from permalake.config.networks import WormholeSettings
from permalake.config.services import ChainSettings
from permalake.net.http import RetryPolicy
from permalake.pipeline.day_landing import DayLanding
from permalake.wormhole.codec.native_addresses import base58
from permalake.wormhole.contracts.tables import CHAIN_ANSWERS
from permalake.wormhole.enrich import head_details
from permalake.wormhole.enrich.chains import FOR_GOOD, Chains
from permalake.wormhole.enrich.questions import TOO_NEW
from permalake.wormhole.enrich.rpcs import opened
from permalake.wormhole.reference import load_reference
from permalake.wormhole.steps.answer_caches import answer_cache
from permalake.wormhole.tables.chain_questions import SCHEMA
from permalake.wormhole.tables.enriched_tables import ANSWERS, INPUTS
from support.lakes import OpenLake
from support.quotes import LOCAL
from support.rpc_server import EvmChain, RefusalError, RpcServer, SolanaChain

DAY, NEXT = dt.date(2024, 3, 18), dt.date(2024, 3, 19)
HASTY = RetryPolicy(read=0.3, back_off=0.01, attempts=12, longest_pause=3)
IMPATIENT = RetryPolicy(read=0.3, back_off=0.01, attempts=2, longest_pause=0, failures=2, rest=0.2)
ALICE, ASSET = "0x" + "a1" * 20, "0x" + "55" * 20
EMITTER = "0e" * 32


def table(questions):
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in questions], SCHEMA)


def tx(number) -> str:
    return f"0x{number:064x}"


def sender(number, day=DAY, chain=2):
    return (chain, "sender", f"{chain}:{EMITTER}:{number:016d}", day, tx(number), 0)


def wrapped(number, day=DAY, chain=2):
    return (chain, "wrapped", f"1:{number:064x}", day, None, 0)


def owner(number, day=DAY):
    return (1, "owner", f"{number:064x}", day, None, 0)


class Desk:
    """An attempt of a lake, and what is asked of it."""

    def __init__(self, spark, folder):
        self.spark = spark
        self.folder = folder
        self.settings = Settings(
            lake=LakeSettings(warehouse=str(folder)), wormhole=WormholeSettings(path=folder)
        )
        self.lake = OpenLake(self.settings)
        self.attempt = self.lake.begin("wormhole", DAY, NEXT, "run")
        self.notes = []
        self.cache = answer_cache(
            spark, self.attempt, CHAIN_ANSWERS, lambda text, day=None: self.notes.append((text, day))
        )
        self.days = DayLanding.of(spark, self.attempt)

    def ask(self, server, chains, *questions, retry_policy=HASTY, again=False, recheck=False):
        """(chain, question, subject) -> address and symbol, of what is answered."""
        sections = {
            number: ChainSettings(rpc_url=f"{server.url}/{number}", rate_per_second=200) for number in chains
        }
        settings = self.settings.model_copy(update={"chains": sections})
        with opened(settings, retry_policy) as nodes:
            chains = Chains(nodes, self.cache, again=again, recheck=recheck)
            rows = chains.answers(self.days, table(questions), DAY, NEXT).to_table().to_pylist()
        return {
            (row["chain"], row["question"], row["subject"]): (row["address"], row["symbol"]) for row in rows
        }

    def kept(self):
        """(question, subject, date) -> reason."""
        rows = self.cache.read(dt.date.min, dt.date.max).to_table().to_pylist()
        return {(row["question"], row["subject"], row["date"]): row["reason"] for row in rows}


@pytest.fixture
def desk(spark, tmp_path):
    return Desk(spark.newSession(), tmp_path)


@pytest.fixture
def world():
    chains = load_reference().chains
    evm, solana = EvmChain(chains[2].core, f"0x{chains[2].token_bridge[24:]}"), SolanaChain()
    evm.transactions = {tx(n): (ALICE, [(EMITTER, n)], n) for n in range(1, 4)}
    evm.wrapped = {(1, f"{7:064x}"): ASSET}
    evm.tokens = {ASSET: ("SOL", "Wrapped SOL (Wormhole)", 9)}
    solana.owners = {base58(bytes(31) + b"\5"): base58(b"\7" * 32)}
    return {1: solana, 2: evm}


def test_each_question_is_asked_once_and_kept_with_its_answer_or_reason(desk, world) -> None:
    asked = [sender(1), sender(2), sender(9), wrapped(7), wrapped(7, NEXT), wrapped(8), owner(5), owner(6)]
    with RpcServer(world, faulty=0.2, errors=0.2, seed=8) as server:
        found = desk.ask(server, world, *asked)
        assert found == {
            sender(1)[:3]: (ALICE, None),
            sender(2)[:3]: (ALICE, None),
            wrapped(7)[:3]: (ASSET, "SOL"),
            owner(5)[:3]: (base58(b"\7" * 32), None),
        }
        assert {
            call: n for call, n in Counter(server.answered[2] + server.answered[1]).items() if n > 1
        } == {}
        assert desk.kept() == {
            ("sender", sender(1)[2], DAY): None,
            ("sender", sender(2)[2], DAY): None,
            ("sender", sender(9)[2], DAY): "the node knows no such transaction",
            ("wrapped", wrapped(7)[2], FOR_GOOD): None,
            ("wrapped", wrapped(8)[2], DAY): "not attested on this chain",
            ("owner", owner(5)[2], FOR_GOOD): None,
            ("owner", owner(6)[2], DAY): "no such account",
        }
        requests = sum(map(len, server.requests.values()))
        assert desk.ask(server, world, *asked) == found
        assert desk.ask(server, world, wrapped(7, NEXT), owner(5, NEXT)).keys() == {
            wrapped(7)[:3],
            owner(5)[:3],
        }
        assert sum(map(len, server.requests.values())) == requests

        # What was not there yesterday may be there today, or once somebody asks for it again.
        world[2].wrapped[(1, f"{8:064x}")] = ASSET
        world[2].transactions[tx(9)] = (ALICE, [(EMITTER, 9)], 9)
        assert desk.ask(server, world, wrapped(8), sender(9)) == {}
        assert desk.ask(server, world, wrapped(8, NEXT)) == {wrapped(8)[:3]: (ASSET, "SOL")}
        assert desk.ask(server, world, sender(9), again=True) == {sender(9)[:3]: (ALICE, None)}
        assert desk.ask(server, world, sender(9)) == {sender(9)[:3]: (ALICE, None)}
    assert desk.notes == []


@pytest.mark.parametrize(
    ("reason", "requests"),
    [("JSON-RPC error -32015", 1), ("the transaction is of a version after 0", 1), (TOO_NEW, 0)],
)
def test_a_version_of_transactions_is_asked_again_once_it_is_known(desk, world, reason, requests) -> None:
    name = base58(b"\3" * 64)
    world[1].transactions, world[1].versions = {name: (base58(b"\7" * 32), None)}, {name: 1}
    question = (1, "sender", f"1:{EMITTER}:{1:016d}", DAY, name, 0)
    row = {"chain": 1, "question": "sender", "subject": question[2], "told": 0, "reason": reason, "date": DAY}
    row["asked_at"] = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    desk.cache.add(pa.Table.from_pylist([row], CHAIN_ANSWERS.arrow))
    with RpcServer(world) as server:
        found = desk.ask(server, [1], question)
        assert found == ({question[:3]: (base58(b"\7" * 32), None)} if requests else {})
        assert len(server.requests[1]) == requests
        desk.ask(server, [1], question)
        assert len(server.requests[1]) == requests


def test_facts_with_a_part_missing_are_asked_again_by_force(desk, world) -> None:
    world[2].tokens = {ASSET: (None, "Wrapped SOL (Wormhole)", 9)}
    with RpcServer(world) as server:
        assert desk.ask(server, world, wrapped(7)) == {wrapped(7)[:3]: (ASSET, None)}
        world[2].tokens = {ASSET: ("SOL", "Wrapped SOL (Wormhole)", 9)}
        assert desk.ask(server, world, wrapped(7), again=True) == {wrapped(7)[:3]: (ASSET, None)}
        assert desk.ask(server, world, wrapped(7), recheck=True) == {wrapped(7)[:3]: (ASSET, "SOL")}
        requests = len(server.requests[2])
        assert desk.ask(server, world, wrapped(7, NEXT), recheck=True) == {wrapped(7)[:3]: (ASSET, "SOL")}
        assert len(server.requests[2]) == requests
    assert {day for _, _, day in desk.kept()} == {FOR_GOOD, FOR_GOOD - dt.timedelta(days=1)}


def test_the_live_head_has_the_answer_that_days_have(desk, world) -> None:
    world[2].tokens = {ASSET: (None, "Wrapped SOL (Wormhole)", 9), ALICE: ("A", "Alice", 8)}
    tokens = [(2, "token", "00" * 12 + address[2:], DAY, None, 0) for address in (ASSET, ALICE)]
    with RpcServer(world) as server:
        assert desk.ask(server, [2], *tokens)[tokens[0][:3]] == (ASSET, None)
        world[2].tokens[ASSET] = ("SOL", "Wrapped SOL (Wormhole)", 9)
        of_days = desk.ask(server, [2], *tokens, recheck=True)
    assert of_days == {tokens[0][:3]: (ASSET, "SOL"), tokens[1][:3]: (ALICE, "A")}
    stored = desk.cache.read(dt.date.min, dt.date.max).to_table()
    answers = LOCAL.results(
        {ANSWERS: head_details._ANSWERS}, {ANSWERS: INPUTS[ANSWERS]}, {CHAIN_ANSWERS.name: stored}
    )
    of_head = {
        (row["chain"], row["question"], row["subject"]): (row["address"], row["symbol"])
        for row in answers[ANSWERS].to_pylist()
    }
    assert of_head == of_days


def test_what_no_finalized_block_proves_is_kept_for_its_day_only(desk, world, monkeypatch) -> None:
    plain = world[2].call

    def call(method, params):
        if params[1:] == ["finalized"]:
            raise RefusalError({"code": -32602, "message": "invalid argument 1"})
        return plain(method, params)

    monkeypatch.setattr(world[2], "call", call)
    with RpcServer(world) as server:
        assert desk.ask(server, world, wrapped(7)) == {wrapped(7)[:3]: (ASSET, "SOL")}
    assert set(desk.kept()) == {("wrapped", wrapped(7)[2], DAY)}


def test_a_node_that_is_down_leaves_its_questions_open_and_others_are_answered(desk, world) -> None:
    asked = [sender(1), sender(2), owner(5)]
    with RpcServer(world) as server, RpcServer(world) as broken:
        broken.down = "503"
        sections = {
            1: ChainSettings(rpc_url=f"{server.url}/1", rate_per_second=200),
            2: ChainSettings(rpc_url=f"{broken.url}/2", rate_per_second=200),
        }
        settings = desk.settings.model_copy(update={"chains": sections})
        with opened(settings, IMPATIENT) as nodes:
            answers = Chains(nodes, desk.cache).answers(desk.days, table(asked), DAY, NEXT)
            rows = answers.to_table().to_pylist()
        assert [row["question"] for row in rows] == ["owner"]
        assert desk.notes == [
            (
                "chain details: chain 2: HTTP 503; 2 questions to chain 2 without an answer, fill in later "
                "with --only enrich",
                None,
            )
        ]
        assert len(desk.ask(server, world, *asked)) == 3


def test_what_a_node_of_another_chain_would_say_is_not_kept(desk, world) -> None:
    world[2].chain_id = 56
    with RpcServer(world) as server:
        assert desk.ask(server, world, sender(1), wrapped(7), owner(5)).keys() == {owner(5)[:3]}
        assert len(server.answered[2]) == 1
    assert set(desk.kept()) == {("owner", owner(5)[2], FOR_GOOD)}
    assert desk.notes == [
        (
            "chain details: chain 2: a node of EVM chain 56, not 1; check chains.2.rpc_url; 2 questions to "
            "chain 2 without an answer, fill in later with --only enrich",
            None,
        )
    ]


def test_chains_without_an_rpc_are_remarked_by_day(desk, world) -> None:
    asked = [sender(1), sender(2), sender(3, NEXT), wrapped(7, chain=4), owner(5, NEXT)]
    with RpcServer(world) as server:
        assert desk.ask(server, [], *asked) == {}
        assert desk.ask(server, [2], *asked).keys() == {asked[0][:3], asked[1][:3], asked[2][:3]}
    assert desk.notes == [
        ("chain details: no chains.ID.rpc_url of 2, 4; unknown: senders 2, resulting tokens 1", DAY),
        ("chain details: no chains.ID.rpc_url of 1, 2; unknown: senders 1, owners of accounts 1", NEXT),
        ("chain details: no chains.ID.rpc_url of 4; unknown: resulting tokens 1", DAY),
        ("chain details: no chains.ID.rpc_url of 1; unknown: owners of accounts 1", NEXT),
    ]


def test_what_the_source_reported_is_there_without_a_question_too(desk, world) -> None:
    """Of chains whose RPC is asked nothing, on days that ask nothing."""
    row = {"question": "reported_sender", "told": 1, "asked_at": dt.datetime(2024, 4, 1, tzinfo=dt.UTC)}
    rows = [
        {**row, "chain": 21, "subject": f"21:{EMITTER}:{n:016d}", "address": f"0x{n}", "date": day}
        for n, day in enumerate((DAY, NEXT, NEXT + dt.timedelta(days=1)))
    ]
    desk.cache.add(pa.Table.from_pylist(rows, CHAIN_ANSWERS.arrow))
    reported = {(21, "reported_sender", row["subject"]): (row["address"], None) for row in rows[:2]}
    with RpcServer(world) as server:
        assert desk.ask(server, world) == reported
        assert not server.requests
        assert desk.ask(server, world, wrapped(7)) == {**reported, wrapped(7)[:3]: (ASSET, "SOL")}
    assert desk.notes == []
