"""What token bridges held, as an EVM chain tells it, against a server of this machine that misbehaves."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, date, datetime, timedelta

import pytest

from permalake.net.http import RetryPolicy, Service
from permalake.wormhole.enrich.evm_custody import CustodyAnswer, CustodySearch
from permalake.wormhole.enrich.jsonrpc import RpcNode, probe
from permalake.wormhole.enrich.rpc_errors import EVM, EVM_OF_THE_PAST
from permalake.wormhole.reference import ChainInfo
from support.rpc_server import EvmChain, RefusalError, RpcServer

PATIENT = RetryPolicy(read=3, back_off=0.01, attempts=12, longest_pause=3)
SHORT = RetryPolicy(read=3, back_off=0.01, attempts=2, longest_pause=0, failures=2, rest=30)
ETHEREUM = ChainInfo(2, family="evm", core="0x" + "c0" * 20, token_bridge="00" * 12 + "b0" * 20)
DAY = date(2024, 3, 18)
MIDNIGHT = int(datetime(2024, 3, 19, tzinfo=UTC).timestamp())
WETH = "0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2"
USDC = "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48"


def word(address):
    return "00" * 12 + address[2:]


def ask(server, tokens, days=(DAY,), chain=ETHEREUM, retry_policy=PATIENT):
    service = Service("chain 2", f"{server.url}/2", 500, retry_policy=retry_policy, probe=probe(EVM))
    with RpcNode(service, 4, "chains.2.rpc_url", EVM) as node:
        search = CustodySearch(chain, node)
        return [answer for day in days for answer in search.answers(day, tokens)]


@pytest.fixture
def world():
    chain = EvmChain(first=MIDNIGHT - 12 * 9_000_000)
    chain.last_block = (MIDNIGHT - chain.first) // chain.every + 100
    chain.tokens = {WETH: ("WETH", "Wrapped Ether", 18), USDC: ("USDC", "USD Coin", 6)}
    return chain


@pytest.fixture
def last(world):
    """The last block before midnight; the one after it stands exactly on it."""
    return (MIDNIGHT - world.first) // world.every - 1


def test_balances_are_those_of_the_days_last_block(world, last) -> None:
    """ETH lies in the bridge as WETH; amounts are cut to eight decimals as the bridge cuts them."""
    world.held = {
        WETH: {1: 5, last: 3 * 10**18 + 123_456_789_987_654_321, last + 1: 9 * 10**18},
        USDC: {1: 2_500_000, last + 1: 0},
    }
    world.outstanding = {WETH: {1: 3 * 10**8}, USDC: {1: 2_000_000}}
    with RpcServer({2: world}, faulty=0.1, errors=0.1, seed=4) as server:
        told = ask(server, [word(WETH), word(USDC)])
        assert max(Counter(server.answered[2]).values()) == 1
    weth = 3 * 10**18 + 123_456_789_987_654_321
    assert told == [
        CustodyAnswer(last, 18, weth, "3.12345678", "3"),
        CustodyAnswer(last, 6, 2_500_000, "2.5", "2"),
    ]


def test_blocks_off_midnight(world) -> None:
    world.first -= 5  # no block stands on midnight
    world.held = {WETH: {1: 0}}
    with RpcServer({2: world}) as server:
        (told,) = ask(server, [word(WETH)])
    at = world.first + told.block * 12
    assert MIDNIGHT - 12 <= at < MIDNIGHT
    assert (told.balance, told.amount) == (0, "0")


def test_huge_numbers_and_odd_decimals_are_exact(world) -> None:
    odd = {f"0x{n:040x}": n for n in (0, 1, 8, 9, 77, 255)}
    world.tokens = {token: ("T", "T", places) for token, places in odd.items()}
    world.held = {token: {1: 2**256 - 1} for token in odd}
    world.outstanding = {token: {1: 2**64 - 1} for token in odd}
    with RpcServer({2: world}) as server:
        told = ask(server, [word(token) for token in odd])
    digits = str(2**256 - 1)
    assert [answer.amount for answer in told] == [
        digits,
        f"{digits[:-1]}.{digits[-1]}",
        f"{digits[:-8]}.{digits[-8:]}",
        f"{digits[:-9]}.{digits[-9:-1]}",
        "1.15792089",
        "0",
    ]
    assert [answer.outstanding for answer in told][:2] == [str(2**64 - 1), "1844674407370955161.5"]


def test_a_token_that_tells_no_balance_is_never_empty(world, last) -> None:
    broken, gone, mute = (f"0x{n:040x}" for n in (1, 2, 3))
    world.tokens[mute] = ("M", "M", None)
    world.held = {broken: {1: None}, WETH: {1: 7}, mute: {1: 8}}
    with RpcServer({2: world}) as server:
        told = ask(server, [word(WETH), word(broken), word(gone), "ab" * 32, word(mute)])
    assert told == [
        CustodyAnswer(last, 18, 7, "0", None),  # seven wei, beside no count of the bridge
        CustodyAnswer(last, none="JSON-RPC error 3"),
        CustodyAnswer(last, none="the contract tells no balance"),
        CustodyAnswer(last, none="no address of this chain"),
        CustodyAnswer(last, balance=8),
    ]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (-32000, "missing trie node 5d7c (path ) state 0x5d7c is not available, not found"),
        (-32000, "header not found"),
        (-32000, "historical state 0x12ab is not available"),
        (-32000, "old data not available due to pruning"),
        (-32002, "No state available for block 0x10"),
        (-32000, "World state unavailable"),
        (4444, "pruned history unavailable"),
        (-32603, "distance to target block exceeds maximum proof window"),
        (-32000, "project ID does not have access to archive state"),
    ],
)
def test_a_pruned_node_is_asked_for_one_token(world, code, words) -> None:
    assert EVM_OF_THE_PAST.verdict(code, words) == "refused"
    world.oldest_state, world.forgotten = world.last_block, {"code": code, "message": words}
    world.held = {WETH: {1: 7}, USDC: {1: 7}}
    with RpcServer({2: world}) as server:
        told = ask(server, [word(WETH), word(USDC)] * 40)
        calls = Counter(json.loads(call)[0] for call in server.answered[2])
    assert len(told) == 80
    assert {answer.balance for answer in told} == {None}
    assert {answer.unknown for answer in told} == {
        f"the node cannot read that block, an archive node can (JSON-RPC error {code})"
    }
    assert calls["eth_call"] == 3


@pytest.mark.parametrize(
    "error",
    [
        {"code": -32005, "message": "daily request limit reached for archive data: rate limit"},
        {"code": 429, "message": "Too many requests"},
        {"code": -32603, "message": "internal error"},
    ],
)
def test_a_passing_error_is_no_answer(world, monkeypatch, error) -> None:
    plain = world.call

    def call(method, params):
        if method == "eth_call":
            raise RefusalError(error)
        return plain(method, params)

    monkeypatch.setattr(world, "call", call)
    with RpcServer({2: world}) as server:
        (told,) = ask(server, [word(WETH)], retry_policy=SHORT)
    assert told.balance is None
    assert told.none is None
    assert not told.is_forgotten
    assert told.unknown


@pytest.mark.parametrize("result", [None, 17, "5", [], {"balance": 1}, "0xzz"])
def test_a_result_of_another_form_is_no_answer(world, monkeypatch, result) -> None:
    plain = world.call
    monkeypatch.setattr(
        world, "call", lambda method, params: result if method == "eth_call" else plain(method, params)
    )
    with RpcServer({2: world}) as server:
        (told,) = ask(server, [word(WETH)], retry_policy=SHORT)
    assert (told.balance, told.none, told.is_forgotten) == (None, None, False)
    assert told.unknown


def test_a_day_that_is_not_final_yet_waits(world, last) -> None:
    world.held = {WETH: {1: 7}}
    plain, final = world.call, last - 1

    def call(method, params):
        if method == "eth_getBlockByNumber" and params[0] == "finalized":
            return plain(method, (hex(final),))
        return plain(method, params)

    world.call = call
    with RpcServer({2: world}) as server:
        late, tomorrow, before = ask(
            server, [word(WETH)], [DAY, DAY + timedelta(days=1), DAY - timedelta(days=1)]
        )
        final = last
        (now,) = ask(server, [word(WETH)])
    assert late.unknown == "the last block of the day is not final yet"
    assert tomorrow.unknown == "no block of that time"
    assert before.balance == now.balance == 7


def test_decimals_are_asked_for_once(world) -> None:
    world.held = {WETH: {1: 7}}
    with RpcServer({2: world}) as server:
        ask(server, [word(WETH)], [DAY - timedelta(days=back) for back in range(5)])
        calls = Counter(
            json.loads(call)[1][0]["data"][:10] for call in server.answered[2] if "eth_call" in call
        )
    assert sorted(calls.values()) == [1, 5, 5]


def test_a_chain_without_a_known_bridge(world) -> None:
    with RpcServer({2: world}) as server:
        (told,) = ask(server, [word(WETH)], chain=ChainInfo(2, family="evm"))
        assert not server.answered[2]
    assert told.unknown == "no token bridge is known on this chain"
