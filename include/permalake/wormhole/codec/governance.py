"""Governance messages: what the guardians tell the contracts.

Header (wormhole-foundation/wormhole, ``whitepapers/0002_governance_messaging.md``): module, 32 bytes with
NULs on the left; action u8; target chain u16, 0 for all. What follows depends on module and action.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from permalake.wormhole.codec.vaa import Bool, Vaas

GOVERNANCE_CHAIN = 1
GOVERNANCE_EMITTER = bytes(31) + b"\x04"
_MODULE_SIZE = 32
_ADDRESS_SIZE = 20

Value = str | int | list[str]
_Reader = Callable[[bytes], dict[str, Value]]


@dataclass(frozen=True)
class Governance:
    """A decoded governance message; without ``action_name`` and ``fields`` where the layout is not known."""

    module: str
    action: int
    action_name: str | None
    target_chain: int
    fields: dict[str, Value] = field(default_factory=dict)


def is_governance(vaas: Vaas) -> Bool:
    """VAAs of the governance emitter, bool[n]."""
    emitter = np.frombuffer(GOVERNANCE_EMITTER, np.uint8)
    same = (vaas.emitter_address == emitter).all(axis=1)
    return vaas.has_body & (vaas.emitter_chain == GOVERNANCE_CHAIN) & same


def decode_governance(payload: bytes) -> Governance | None:
    """Decode a payload of the governance emitter; None when it is no governance message."""
    name = payload[:_MODULE_SIZE].lstrip(b"\0")
    if (
        len(payload) <= _MODULE_SIZE
        or not name.isascii()
        or not name.decode("ascii", "replace").isprintable()
    ):
        return None
    if not name:
        return None
    module, action = name.decode("ascii"), payload[_MODULE_SIZE]
    body = payload[_MODULE_SIZE + 1 :]
    label, read = _ACTIONS.get((module, action), (None, None))
    if label == _RECOVER:
        return _recover(module, action, body)
    if len(body) < 2:
        return None
    target_chain = int.from_bytes(body[:2], "big")
    try:
        fields = read(body[2:]) if read else {}
    except struct.error:
        return Governance(module, action, None, target_chain)
    return Governance(module, action, label, target_chain, fields)


def _recover(module: str, action: int, body: bytes) -> Governance | None:
    """The one message that names no target chain: it is for the fork with that EVM chain id."""
    if len(body) < 34:
        return None
    evm_chain_id = str(int.from_bytes(body[:32], "big"))
    chain = int.from_bytes(body[32:34], "big")
    return Governance(module, action, _RECOVER, chain, {"evm_chain_id": evm_chain_id})


def _contract(rest: bytes) -> dict[str, Value]:
    (address,) = struct.unpack_from(">32s", rest)
    return {"new_contract": address.hex()}


def _registration(rest: bytes) -> dict[str, Value]:
    chain, address = struct.unpack_from(">H32s", rest)
    return {"emitter_chain": chain, "emitter_address": address.hex()}


def _guardian_set(rest: bytes) -> dict[str, Value]:
    index, count = struct.unpack_from(">IB", rest)
    keys = struct.unpack_from(f">{_ADDRESS_SIZE * count}s", rest, 5)[0]
    guardians = [keys[at : at + _ADDRESS_SIZE].hex() for at in range(0, len(keys), _ADDRESS_SIZE)]
    return {"new_guardian_set_index": index, "guardians": ["0x" + guardian for guardian in guardians]}


def _message_fee(rest: bytes) -> dict[str, Value]:
    (fee,) = struct.unpack_from(">32s", rest)
    return {"message_fee": str(int.from_bytes(fee, "big"))}


def _fees(rest: bytes) -> dict[str, Value]:
    amount, recipient = struct.unpack_from(">32s32s", rest)
    return {"amount": str(int.from_bytes(amount, "big")), "recipient": recipient.hex()}


_RECOVER = "RecoverChainId"
_BRIDGE: dict[int, tuple[str, _Reader | None]] = {
    1: ("RegisterChain", _registration),
    2: ("ContractUpgrade", _contract),
    3: (_RECOVER, None),
}
_CORE: dict[int, tuple[str, _Reader | None]] = {
    1: ("ContractUpgrade", _contract),
    2: ("GuardianSetUpgrade", _guardian_set),
    3: ("SetMessageFee", _message_fee),
    4: ("TransferFees", _fees),
    5: (_RECOVER, None),
}
_RELAYER: dict[int, tuple[str, _Reader | None]] = {
    1: ("RegisterChain", _registration),
    2: ("ContractUpgrade", _contract),
    3: ("SetDefaultDeliveryProvider", _contract),
}
_ACTIONS: dict[tuple[str, int], tuple[str | None, _Reader | None]] = {
    (module, action): layout
    for module, layouts in {
        "Core": _CORE,
        "TokenBridge": _BRIDGE,
        "NFTBridge": _BRIDGE,
        "WormholeRelayer": _RELAYER,
        "CoreRelayer": _RELAYER,
    }.items()
    for action, layout in layouts.items()
}
