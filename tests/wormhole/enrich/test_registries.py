"""Names of tokens from the registries of token bridges, against nodes of this machine that misbehave."""

from __future__ import annotations

import base64
import hashlib
import json

import bech32
import pytest
import sha3

from permalake.config import Settings
from permalake.config.networks import WormholeSettings
from permalake.config.services import ChainSettings
from permalake.net.http import RetryPolicy
from permalake.wormhole.enrich.questions import ChainAnswer, Question
from permalake.wormhole.enrich.rpcs import rpcs
from permalake.wormhole.reference import load_reference
from support.faulty_server import FaultyServer
from support.rpc_server import RefusalError, RpcServer

HASTY = RetryPolicy(read=0.3, back_off=0.01, attempts=12, longest_pause=3)
SHORT = RetryPolicy(read=0.3, back_off=0.01, attempts=2, longest_pause=0)
TERRA2, APTOS = 18, 22
BRIDGE = "0x576410486a2da45eee6c949c995670112ddf2fbeedab20350d506328eefc9d4f"
APT = "a867703f5395cb2965feb7ebff5cdf39b771fc6156085da3ae4147a00be91b38"
"""The Aptos coin as VAAs name it (wormhole-foundation/wormhole, ``aptos``)."""
CONTRACT = "terra1nsuqsk6kh58ulczatwev87ttq2z6r3pusulg9r24mfj2fvtzd4uq3exn26"
UNKNOWN = "the token bridge knows no such token"
FORGED = "the token bridge's name does not hash to the token"


def external_id(marker, name):
    return bytes([marker]).hex() + sha3.keccak_256(name.encode()).hexdigest()[2:]


FACTORY = f"factory/{CONTRACT}/{'long' * 9}"
ULUNA, ASTRO = external_id(1, "uluna"), external_id(0, CONTRACT)


class CosmosChain:
    """A node with a token bridge: ``tokens``: external id -> its ``token_id``."""

    def __init__(self, bridge, tokens):
        self.bridge, self.tokens = bridge, tokens

    def call(self, method, params):
        path, data, height, prove = params
        if method != "abci_query" or path != "/cosmwasm.wasm.v1.Query/SmartContractState":
            raise RefusalError({"code": -32601, "message": "Method not found"})
        assert (height, prove) == ("0", False)
        request, size = bytes.fromhex(data), len(self.bridge)
        assert request[: size + 2] == bytes([0x0A, size]) + self.bridge.encode()
        assert request[size + 2] == 0x12
        query = json.loads(request[size + 4 :])
        assert len(request[size + 4 :]) == request[size + 3]
        token = base64.b64decode(query["external_id"]["external_id"]).hex()
        if token not in self.tokens:
            log = "cw_token_bridge::x not found: query wasm contract failed"
            return {"response": {"code": 9, "log": log, "value": None, "height": "7"}}
        answer = json.dumps({"token_id": self.tokens[token]}).encode()
        size = [len(answer)] if len(answer) < 128 else [len(answer) & 0x7F | 0x80, len(answer) >> 7]
        value = base64.b64encode(b"\x0a" + bytes(size) + answer).decode()
        return {"response": {"code": 0, "log": "", "value": value, "height": "7"}}


class AptosServer(FaultyServer):
    """A REST API: ``coins``: hash -> (account, module, struct)."""

    handle = "0x" + "7a" * 32

    def __init__(self, coins, **options):
        super().__init__(**options)
        self.coins = coins
        self.states = 0

    def respond(self, handler, body, fault):
        path = handler.path.removeprefix("/v1")
        if path == f"/accounts/{BRIDGE}/resource/{BRIDGE}::state::State":
            self.states += 1
            state = {"native_infos": {"handle": self.handle}}
            return 200, json.dumps({"type": f"{BRIDGE}::state::State", "data": state}).encode()
        if path != f"/tables/{self.handle}/item":
            return 404, b'{"message": "no such resource", "error_code": "resource_not_found"}'
        asked = json.loads(body)
        assert asked["key_type"] == f"{BRIDGE}::token_hash::TokenHash"
        assert asked["value_type"] == "0x1::type_info::TypeInfo"
        token = asked["key"]["hash"].removeprefix("0x")
        if token not in self.coins:
            return 404, b'{"message": "Table Item not found", "error_code": "table_item_not_found"}'
        account, module, struct = self.coins[token]
        info = {"module_name": f"0x{module.encode().hex()}", "struct_name": f"0x{struct.encode().hex()}"}
        return 200, json.dumps({"account_address": account, **info}).encode()


def asked(url, chain, tokens, retry_policy=HASTY):
    settings = Settings(
        wormhole=WormholeSettings(path="."),
        chains={chain: ChainSettings(rpc_url=url, rate_per_second=500)},
    )
    rpc = rpcs(settings, retry_policy)[chain]
    try:
        return rpc.answers("native", [Question("native", token) for token in tokens])
    finally:
        rpc.close()


@pytest.mark.parametrize("faulty", [0.0, 0.3])
def test_a_cosmwasm_bridge_names_denominations_and_contracts(faulty) -> None:
    bridge = bech32.bech32_encode(
        "terra", bech32.convertbits(bytes.fromhex(load_reference().chains[TERRA2].token_bridge), 8, 5)
    )
    forged, gone, long = (external_id(1, name) for name in ("uother", "unobody", FACTORY))
    tokens = {
        ULUNA: {"Bank": {"denom": "uluna"}},
        ASTRO: {"Contract": {"NativeCW20": {"contract_address": CONTRACT}}},
        forged: {"Bank": {"denom": "uluna"}},
        long: {"Bank": {"denom": FACTORY}},
    }
    world = {TERRA2: CosmosChain(bridge, tokens)}
    with RpcServer(world, faulty=faulty, errors=faulty, seed=4) as server:
        assert asked(f"{server.url}/{TERRA2}", TERRA2, [ULUNA, ASTRO, forged, gone, long]) == [
            ChainAnswer("uluna"),
            ChainAnswer(CONTRACT),
            ChainAnswer(reason=FORGED),
            ChainAnswer(reason=UNKNOWN),
            ChainAnswer(FACTORY),
        ]


@pytest.mark.parametrize("name", ["\ud800", 7, None])
def test_a_name_that_is_no_text_leaves_the_question_open(monkeypatch, name) -> None:
    chain = CosmosChain("", {})
    content = json.dumps({"token_id": {"Bank": {"denom": name}}}).encode()
    value = base64.b64encode(b"\x0a" + bytes([len(content)]) + content).decode()
    monkeypatch.setattr(chain, "call", lambda *_: {"response": {"code": 0, "value": value}})
    with RpcServer({TERRA2: chain}) as server:
        (answer,) = asked(f"{server.url}/{TERRA2}", TERRA2, [ULUNA], SHORT)
    assert answer.fault
    assert answer.reason is None


def test_a_node_that_cannot_run_the_query_leaves_the_question_open(monkeypatch) -> None:
    chain = CosmosChain("", {})
    failed = {"response": {"code": 18, "log": "height 7 is not available", "value": None}}
    monkeypatch.setattr(chain, "call", lambda *_: failed)
    with RpcServer({TERRA2: chain}) as server:
        (answer,) = asked(f"{server.url}/{TERRA2}", TERRA2, [ULUNA], SHORT)
    assert answer.fault
    assert answer.reason is None


@pytest.mark.parametrize("faulty", [0.0, 0.3])
def test_aptos_names_coin_types(faulty) -> None:
    full = f"0x{'0' * 4}{'ab' * 30}::coin::T"
    padded, forged = hashlib.sha3_256(full.encode()).hexdigest(), "fa" * 32
    coins = {
        APT: ("0x1", "aptos_coin", "AptosCoin"),
        padded: ("0x" + "ab" * 30, "coin", "T"),
        forged: ("0x1", "aptos_coin", "AptosCoin"),
    }
    with AptosServer(coins, faulty=faulty, seed=6) as server:
        assert asked(f"{server.url}/v1", APTOS, [APT, padded, forged, "00" * 32]) == [
            ChainAnswer("0x1::aptos_coin::AptosCoin"),
            ChainAnswer(full),
            ChainAnswer(reason=FORGED),
            ChainAnswer(reason=UNKNOWN),
        ]
        assert faulty or server.states == 1


def test_a_table_that_is_no_address_is_a_fault(monkeypatch) -> None:
    monkeypatch.setattr(AptosServer, "handle", "../accounts/\ud800")
    with AptosServer({}) as server:
        (answer,) = asked(f"{server.url}/v1", APTOS, [APT], SHORT)
    assert "wrong form" in answer.fault


def test_an_address_that_is_no_node_of_aptos_names_the_setting() -> None:
    with AptosServer({}) as server:
        (answer,) = asked(f"{server.url}/wrong", APTOS, [APT], SHORT)
    assert answer.fault == f"chain {APTOS}: HTTP 404; check chains.{APTOS}.rpc_url"
