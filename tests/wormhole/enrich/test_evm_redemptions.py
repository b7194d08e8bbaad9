"""Redemptions as an EVM chain tells them, against a server of this machine that misbehaves."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace

import pytest

from permalake.net.http import RetryPolicy, Service
from permalake.wormhole.enrich.evm_redemptions import (
    RedemptionAnswer,
    RedemptionSearch,
    SentTransfer,
)
from permalake.wormhole.enrich.jsonrpc import RpcNode, probe
from permalake.wormhole.enrich.rpc_errors import EVM
from permalake.wormhole.reference import ChainInfo
from support.rpc_server import EvmChain, RefusalError, RpcServer

PATIENT = RetryPolicy(read=3, back_off=0.01, attempts=12, longest_pause=3)
SHORT = RetryPolicy(read=3, back_off=0.01, attempts=2, longest_pause=0, failures=2, rest=30)
BRIDGES = {"token_bridge": "00" * 12 + "b0" * 20, "nft_bridge": "00" * 12 + "bf" * 20}
ETHEREUM = ChainInfo(2, family="evm", core="0x" + "c0" * 20, **BRIDGES)
EMITTER, OTHER = "0e" * 32, "0f" * 32
RELAYER, OWNER = "0x" + "a1" * 20, "0x" + "b2" * 20
DAY = 86_400
GAS = {"gasUsed": hex(120_000), "effectiveGasPrice": hex(2_500_000_001)}


def tx(number) -> str:
    return f"0x{number:064x}"


def digest(number) -> str:
    return f"d1{number:062x}"


def sent(number, at, bridge="token", chain=1, emitter=EMITTER):
    return SentTransfer(f"{chain}:{emitter}:{number:016d}", bridge, digest(number), at)


def ask(server, transfers, chain=ETHEREUM, retry_policy=PATIENT):
    service = Service("chain 2", f"{server.url}/2", 500, retry_policy=retry_policy, probe=probe(EVM))
    with RpcNode(service, 4, "chains.2.rpc_url", EVM) as node:
        return RedemptionSearch(chain, node).answers(transfers)


@pytest.fixture
def world():
    chain = EvmChain()
    chain.last_block = 2_000_000
    return chain


def redeem(chain, number, block, of=1, emitter=EMITTER, sender=RELAYER, transaction=None, **fields) -> None:
    """The bridge redeems a message; fields of the receipt are those of ``GAS`` and ``fields``."""
    chain.completed.add(digest(number))
    name = tx(transaction or number)
    _, messages, _, _ = chain.redemptions.setdefault(name, (sender, [], block, GAS | fields))
    messages.append((of, emitter, number))


def test_bridges_tell_what_is_redeemed_and_logs_by_whom_when_and_at_what_fee(world) -> None:
    at = world.first + 12 * 1000
    redeem(world, 1, 1005, l1Fee=hex(7))
    redeem(world, 2, 1100, sender=OWNER.upper().replace("0X", "0x"))
    redeem(world, 3, 1100, transaction=2)  # several in one transaction
    redeem(world, 2**64 - 1, 400_000 // 12 + 1000)
    world.completed.add(digest(5))  # before the bridge emitted logs
    world.completed.add(digest(6))
    far = sent(2**64 - 1, at + 2)
    asked = [
        sent(1, at),
        sent(2, at),
        sent(3, at + 1),
        far,
        sent(4, at),
        sent(5, at),
        sent(6, at, "nft"),
        sent(7, at, "nft"),
    ]
    with RpcServer({2: world}, faulty=0.1, errors=0.1, seed=4) as server:
        told = ask(server, asked)
        assert max(Counter(server.answered[2]).values()) == 1
    fee = "0.00030000000012"
    assert told == [
        RedemptionAnswer(True, tx(1), world.first + 12 * 1005, RELAYER, "0.000300000000120007"),
        RedemptionAnswer(True, tx(2), world.first + 12 * 1100, OWNER, fee),
        RedemptionAnswer(True, tx(2), world.first + 12 * 1100, OWNER, fee),
        RedemptionAnswer(True, tx(2**64 - 1), world.first + 12 * (400_000 // 12 + 1000), RELAYER, fee),
        RedemptionAnswer(is_completed=False),
        RedemptionAnswer(is_completed=True),
        RedemptionAnswer(is_completed=True),
        RedemptionAnswer(is_completed=False),
    ]


def test_transfers_in_flight_cost_one_call_each_and_no_search(world) -> None:
    asked = [sent(n, world.first + n * DAY) for n in range(1, 9)]
    with RpcServer({2: world}) as server:
        assert ask(server, asked) == [RedemptionAnswer(is_completed=False)] * 8
        calls = Counter(json.loads(call)[0] for call in server.answered[2])
    assert calls == {"eth_getBlockByNumber": 1, "eth_call": 8}


@pytest.mark.parametrize("most_blocks", [5000, 300])
def test_the_answers_are_those_of_a_walk_over_all_logs(world, most_blocks) -> None:
    """A second computation: every log of the chain, by message."""
    world.most_blocks = most_blocks
    chance = random.Random(7)
    asked = []
    for number in range(1, 121):
        block = chance.randrange(1000, 60_000)
        emitter = chance.choice((EMITTER, OTHER))
        transfer = sent(number, world.first + 12 * block, chain=chance.choice((1, 4, 6)), emitter=emitter)
        asked.append(transfer)
        if chance.random() < 0.8:
            later = block + int(chance.random() ** 4 * 7 * DAY / 12)
            redeem(world, number, later, of=transfer.message[0], emitter=emitter, sender=f"0x{number:040x}")
    walked = {
        message: RedemptionAnswer(True, name, world.first + 12 * block, sender, "0.00030000000012")
        for name, (sender, messages, block, _) in world.redemptions.items()
        for message in messages
    }
    with RpcServer({2: world}) as server:
        found = ask(server, asked)
        searched = sum("eth_getLogs" in call for call in server.answered[2])
    assert found == [walked.get(one.message, RedemptionAnswer(is_completed=False)) for one in asked]
    assert 80 < sum(bool(one.is_completed) for one in found) < 120
    assert searched < 2_000_000 // min(most_blocks, 2000)


@pytest.mark.parametrize(
    ("code", "words", "most_blocks"),
    [
        (-32614, "eth_getLogs is limited to a 10,000 range", 800),
        (-32047, "Invalid eth_getLogs request. 'fromBlock'-'toBlock' range too large. Max range: 800", 800),
        (-32602, "eth_getLogs is limited to 0 - 50 blocks range", 51),
        (-32600, "You can make eth_getLogs requests with up to a 10 block range.", 10),
        (-32614, "eth_getLogs is limited to a 5 range", 5),
        (-32000, "query exceeds max results 20000, retry with the range 1-800", 800),
        (-32005, "query returned more than 10000 results", 800),
        (-32099, "no such luck", 800),
    ],
)
def test_a_range_that_a_node_refuses_is_made_smaller_whatever_it_says(
    world, code, words, most_blocks
) -> None:
    world.most_blocks, world.too_many_blocks = most_blocks, {"code": code, "message": words}
    redeem(world, 1, 1005)
    with RpcServer({2: world}) as server:
        (told,) = ask(server, [sent(1, world.first + 12_000)], retry_policy=SHORT)
        searched = sum("eth_getLogs" in call for call in server.answered[2])
    assert told.transaction == tx(1)
    assert searched < (60 if most_blocks > 100 else 700)


def test_a_log_of_another_contract_or_a_lying_one_redeems_nothing(world, monkeypatch) -> None:
    at = world.first + 12 * 1000
    redeem(world, 1, 1005)
    world.completed.add(digest(2))
    plain = world.call

    def call(method, params):
        found = plain(method, params)
        if method == "eth_getLogs":
            foreign = {**world._redeemed(tx(9), 1, EMITTER, 2), "address": "0x" + "66" * 20}
            return [*found, foreign]
        if method == "eth_getTransactionReceipt":
            return {**found, "logs": []}
        return found

    monkeypatch.setattr(world, "call", call)
    with RpcServer({2: world}) as server:
        told = ask(server, [sent(1, at), sent(2, at)])
    assert told == [
        RedemptionAnswer(is_completed=True, reason="the receipt of the transaction does not redeem it"),
        RedemptionAnswer(is_completed=True),
    ]


def test_a_node_that_refuses_every_range_tells_what_is_redeemed_but_no_transaction(world) -> None:
    world.most_blocks = 0
    redeem(world, 1, 1005)
    with RpcServer({2: world}) as server:
        told = ask(server, [sent(1, world.first + 12_000), sent(2, world.first + 12_000)])
    assert told == [
        RedemptionAnswer(is_completed=True, reason="JSON-RPC error -32000"),
        RedemptionAnswer(is_completed=False),
    ]


def test_a_fault_of_the_node_leaves_the_question_open(world, monkeypatch) -> None:
    redeem(world, 1, 1005)
    plain = world.call

    def call(method, params):
        if method == "eth_getLogs":
            raise RefusalError({"code": -32603, "message": "internal error"})
        return plain(method, params)

    monkeypatch.setattr(world, "call", call)
    asked = [sent(1, world.first + 12_000), sent(2, world.first + 12_000)]
    with RpcServer({2: world}) as server:
        first, second = ask(server, asked, retry_policy=SHORT)
        assert first.fault
        assert first.transaction is None
        assert second == RedemptionAnswer(is_completed=False)
        server.down = "503"
        assert all(one.fault and one.is_completed is None for one in ask(server, asked, retry_policy=SHORT))


@pytest.mark.parametrize(
    ("method", "name", "value"),
    [
        ("eth_getTransactionReceipt", "from", None),
        ("eth_getTransactionReceipt", "from", "0x" + "a1" * 19 + "\ud800"),
        ("eth_getTransactionReceipt", "blockNumber", "-0x1"),
        ("eth_getTransactionReceipt", "gasUsed", "0x1" + "0" * 64),
        ("eth_getTransactionReceipt", "l1Fee", "-0x1"),
        ("eth_getLogs", "transactionHash", "\ud800"),
        ("eth_getBlockByNumber", "timestamp", "0x4000000000"),
        ("eth_getBlockByNumber", "number", "0x1" + "0" * 16),
    ],
)
def test_what_no_table_holds_is_a_fault_and_kept_by_none(world, monkeypatch, method, name, value) -> None:
    redeem(world, 1, 1005)
    plain = world.call

    def call(asked, params):
        result = plain(asked, params)
        if asked != method or params[0] == "finalized":
            return result
        return [{**log, name: value} for log in result] if asked == "eth_getLogs" else {**result, name: value}

    monkeypatch.setattr(world, "call", call)
    with RpcServer({2: world}) as server:
        (told,) = ask(server, [sent(1, world.first + 12_000)], retry_policy=SHORT)
    assert told.fault
    assert replace(told, fault=None) == RedemptionAnswer(is_completed=True)


def test_a_chain_without_the_bridge_cannot_tell(world) -> None:
    with RpcServer({2: world}) as server:
        told = ask(server, [sent(1, world.first, "nft")], replace(ETHEREUM, nft_bridge=None))
        elsewhere = replace(ETHEREUM, token_bridge="00" * 12 + "99" * 20)
        silent = ask(server, [sent(1, world.first)], elsewhere)
    assert told == [RedemptionAnswer(reason="no nft bridge is known on this chain")]
    assert silent == [RedemptionAnswer(reason="the bridge does not tell")]
