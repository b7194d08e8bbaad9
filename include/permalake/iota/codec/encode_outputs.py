"""Outputs of both protocols to bytes: the inverse of :mod:`~permalake.iota.codec.decode_outputs`."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from permalake.iota.codec.features import ISSUER, METADATA, SENDER, TAG
from permalake.iota.codec.outputs import ALIAS, BASIC, DUST_ALLOWANCE, FOUNDRY, NFT, SINGLE, TREASURY
from permalake.iota.codec.unlock_conditions import (
    ADDRESS,
    EXPIRATION,
    GOVERNOR,
    IMMUTABLE_ALIAS,
    STATE_CONTROLLER,
    STORAGE_RETURN,
    TIMELOCK,
)

NO_ID = bytes(32)


@dataclass(frozen=True)
class Address:
    """An address: type (0 Ed25519, 8 alias, 16 NFT) and 32 bytes."""

    kind: int
    value: bytes

    def pack(self) -> bytes:
        """Return the 33 bytes of the address."""
        return bytes([self.kind]) + self.value


@dataclass(frozen=True)
class NativeToken:
    """A native token: its 38-byte id (a foundry id) and amount."""

    token_id: bytes
    amount: int


@dataclass(frozen=True)
class Output:
    """An output of any type; fields that its type does not have keep their defaults.

    ``address`` is the owner (basic, NFT, Chrysalis) or a foundry's alias; ``chain_id`` an alias or NFT id.
    """

    kind: int
    amount: int
    address: Address | None = None
    native_tokens: tuple[NativeToken, ...] = ()
    storage_return: tuple[Address, int] | None = None
    timelock: int = 0
    expiration: tuple[Address, int] | None = None
    state_controller: Address | None = None
    governor: Address | None = None
    sender: Address | None = None
    issuer: Address | None = None
    metadata: bytes = b""
    tag: bytes = b""
    immutable_metadata: bytes = b""
    chain_id: bytes = NO_ID
    state_index: int = 0
    state_metadata: bytes = b""
    foundry_counter: int = 0
    serial_number: int = 0
    minted: int = 0
    melted: int = 0
    maximum: int = 0


def pack_output(output: Output) -> bytes:
    """Return the output's bytes."""
    if output.kind == TREASURY:
        return struct.pack("<BQ", TREASURY, output.amount)
    if output.kind in (SINGLE, DUST_ALLOWANCE):
        owner = output.address.pack() if output.address else b""
        return bytes([output.kind]) + owner + struct.pack("<Q", output.amount)
    tokens = b"".join(token.token_id + u256(token.amount) for token in output.native_tokens)
    packed = struct.pack("<BQB", output.kind, output.amount, len(output.native_tokens)) + tokens
    packed += _body(output) + _pack_list(_conditions(output)) + _pack_list(_features(output))
    return packed if output.kind == BASIC else packed + _pack_list(_immutable_features(output))


def u256(value: int) -> bytes:
    """Return a u256, little-endian."""
    return value.to_bytes(32, "little")


def _pack_list(elements: list[bytes]) -> bytes:
    return bytes([len(elements)]) + b"".join(elements)


def _body(output: Output) -> bytes:
    if output.kind == ALIAS:
        state = struct.pack("<IH", output.state_index, len(output.state_metadata)) + output.state_metadata
        return output.chain_id + state + struct.pack("<I", output.foundry_counter)
    if output.kind == FOUNDRY:
        scheme = u256(output.minted) + u256(output.melted) + u256(output.maximum)
        return struct.pack("<IB", output.serial_number, 0) + scheme
    return output.chain_id if output.kind == NFT else b""


def _conditions(output: Output) -> list[bytes]:
    elements = []
    if output.address and output.kind != FOUNDRY:
        elements.append(bytes([ADDRESS]) + output.address.pack())
    if output.storage_return:
        address, amount = output.storage_return
        elements.append(bytes([STORAGE_RETURN]) + address.pack() + struct.pack("<Q", amount))
    if output.timelock:
        elements.append(struct.pack("<BI", TIMELOCK, output.timelock))
    if output.expiration:
        address, time = output.expiration
        elements.append(bytes([EXPIRATION]) + address.pack() + struct.pack("<I", time))
    if output.state_controller:
        elements.append(bytes([STATE_CONTROLLER]) + output.state_controller.pack())
    if output.governor:
        elements.append(bytes([GOVERNOR]) + output.governor.pack())
    if output.address and output.kind == FOUNDRY:
        elements.append(bytes([IMMUTABLE_ALIAS]) + output.address.pack())
    return elements


def _metadata(value: bytes) -> bytes:
    return struct.pack("<BH", METADATA, len(value)) + value


def _features(output: Output) -> list[bytes]:
    elements = []
    if output.sender:
        elements.append(bytes([SENDER]) + output.sender.pack())
    if output.metadata:
        elements.append(_metadata(output.metadata))
    if output.tag:
        elements.append(bytes([TAG, len(output.tag)]) + output.tag)
    return elements


def _immutable_features(output: Output) -> list[bytes]:
    elements = []
    if output.issuer:
        elements.append(bytes([ISSUER]) + output.issuer.pack())
    if output.immutable_metadata:
        elements.append(_metadata(output.immutable_metadata))
    return elements
