"""Names of tokens whose 32 bytes are a hash, from the registry of the token bridge on their own chain.

CosmWasm's bridges answer ``external_id`` with a denomination or contract
(wormhole-foundation/wormhole, ``cosmwasm/contracts/token-bridge/src/token_address.rs``); the node is asked by
CometBFT's ``abci_query``. Aptos keeps coin types in the table ``native_infos`` of the bridge's state
(``aptos/token_bridge/sources/state.move``); the node is asked by its REST API, ``rpc_url`` with ``/v1``. A
name counts only if its hash is the token, so an answer is a fact and needs no finalized block.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from typing import Any

import bech32
import sha3

from permalake.net.http import RequestRejectedError, Service, UnavailableError
from permalake.wormhole.enrich import rpc_errors
from permalake.wormhole.enrich.foreign_values import aptos_address, whole_text
from permalake.wormhole.enrich.jsonrpc import Call, Reply, RpcNode
from permalake.wormhole.enrich.questions import ChainAnswer, NodeRpc, Question
from permalake.wormhole.reference import ChainInfo

_QUERY = "/cosmwasm.wasm.v1.Query/SmartContractState"
_LATEST = "0"
_CONTRACT, _DENOMINATION = 0, 1
_NO_BRIDGE = ChainAnswer(reason="no token bridge is known on this chain")
_UNKNOWN = ChainAnswer(reason="the token bridge knows no such token")
_OTHER = ChainAnswer(reason="the token bridge's name does not hash to the token")


class Cosmos(NodeRpc[RpcNode]):
    """The RPC (CometBFT) of one chain with Wormhole's CosmWasm contracts."""

    errors = rpc_errors.COSMOS

    def __init__(self, chain: ChainInfo, node: RpcNode) -> None:
        super().__init__(node)
        self._bridge = _contract(chain)

    def answers(self, kind: str, questions: Sequence[Question]) -> list[ChainAnswer]:  # noqa: ARG002
        """Return the denomination or contract of every token, in order."""
        if self._bridge is None:
            return [_NO_BRIDGE] * len(questions)
        calls = [_external_id(self._bridge, question.subject) for question in questions]
        replies = self._node.ask(calls)
        return [
            _denomination(question.subject, reply) for question, reply in zip(questions, replies, strict=True)
        ]


class Aptos(NodeRpc[Service]):
    """The REST API of one chain with Wormhole's Move modules for Aptos."""

    def __init__(self, chain: ChainInfo, service: Service, setting: str) -> None:
        super().__init__(service)
        self._setting = setting
        self._bridge = chain.token_bridge_program
        self._table: str | None = None

    def answers(self, kind: str, questions: Sequence[Question]) -> list[ChainAnswer]:  # noqa: ARG002
        """Return the coin type of every token, in order."""
        if self._bridge is None:
            return [_NO_BRIDGE] * len(questions)
        return [self._coin_type(self._bridge, question.subject) for question in questions]

    def _coin_type(self, bridge: str, token: str) -> ChainAnswer:
        try:
            table = self._table = self._table or self._native_infos(bridge)
            item = {
                "key_type": f"{bridge}::token_hash::TokenHash",
                "value_type": "0x1::type_info::TypeInfo",
                "key": {"hash": f"0x{token}"},
            }
            names = self._node.post(f"/tables/{table}/item", _type_names, item)
        except UnavailableError as error:
            return ChainAnswer(fault=str(error))
        except RequestRejectedError as rejected:
            body = rejected.body if isinstance(rejected.body, dict) else {}
            if rejected.status == 404 and body.get("error_code") == "table_item_not_found":
                return _UNKNOWN
            return ChainAnswer(fault=f"{self._node.name}: HTTP {rejected.status}; check {self._setting}")
        proven = [name for name in names if hashlib.sha3_256(name.encode()).hexdigest() == token]
        return ChainAnswer(proven[0]) if proven else _OTHER

    def _native_infos(self, bridge: str) -> str:
        place = f"/accounts/{bridge}/resource/{bridge}::state::State"
        return self._node.get(place, _table_of)


def _table_of(state: Any) -> str:
    """Return the address of the table of coin types, a part of the path by which it is asked."""
    return aptos_address(state["data"]["native_infos"]["handle"])


def _contract(chain: ChainInfo) -> str | None:
    if not chain.hrp or not chain.token_bridge:
        return None
    return bech32.bech32_encode(chain.hrp, bech32.convertbits(bytes.fromhex(chain.token_bridge), 8, 5) or [])


def _external_id(bridge: str, token: str) -> Call:
    query = {"external_id": {"external_id": base64.b64encode(bytes.fromhex(token)).decode("ascii")}}
    request = _field(1, bridge.encode("ascii")) + _field(2, json.dumps(query).encode("ascii"))
    return Call("abci_query", (_QUERY, request.hex(), _LATEST, False), _token_id)


def _token_id(result: Any) -> str | None:
    """Return the name in an answer of the contract; None where it has no such token.

    Raises:
        ValueError: The node could not run the query.
    """
    response = result["response"]
    if response.get("code"):
        if "not found" in str(response.get("log")):
            return None
        raise ValueError(f"abci_query: code {response['code']}")
    identifier = json.loads(_first_field(base64.b64decode(response["value"], validate=True)))["token_id"]
    return whole_text(
        identifier["Bank"]["denom"]
        if "Bank" in identifier
        else identifier["Contract"]["NativeCW20"]["contract_address"]
    )


def _denomination(token: str, reply: Reply) -> ChainAnswer:
    if reply.fault:
        return ChainAnswer(fault=reply.fault)
    if reply.value is None:
        return ChainAnswer(reason=reply.no) if reply.no else _UNKNOWN
    hashed = bytearray(sha3.keccak_256(reply.value.encode()).digest())
    hashed[0] = bytes.fromhex(token)[0]
    is_token = hashed[0] in (_CONTRACT, _DENOMINATION) and hashed.hex() == token
    return ChainAnswer(reply.value) if is_token else _OTHER


def _type_names(info: Any) -> list[str]:
    """Return a ``0x1::type_info::TypeInfo`` as Move may write the type: the address short or in full."""
    module, struct = (
        bytes.fromhex(info[name].removeprefix("0x")).decode() for name in ("module_name", "struct_name")
    )
    account = int(info["account_address"], 16)
    return [f"0x{account:x}::{module}::{struct}", f"0x{account:064x}::{module}::{struct}"]


def _field(number: int, value: bytes) -> bytes:
    """Encode a length-delimited field of a Protobuf message."""
    return bytes([number << 3 | 2]) + _varint(len(value)) + value


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])


def _first_field(message: bytes) -> bytes:
    """Return field 1 of a Protobuf message that has no other."""
    if message[:1] != b"\x0a":
        raise ValueError("no field 1")
    size = shift = 0
    for at, part in enumerate(message[1:11], start=2):
        size |= (part & 0x7F) << shift
        shift += 7
        if part < 0x80:
            if len(message) != at + size:
                raise ValueError("a message that breaks off")
            return message[at:]
    raise ValueError("no length")
