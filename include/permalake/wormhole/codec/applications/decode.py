"""The application of a message, and its fields.

NTT's messages are recognized by their prefix, whoever emits them; the others by emitter, and transfers with
payload by the contract that receives them. Application ids are Wormholescan's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from permalake.wormhole.codec.applications.circle_integration import read_circle
from permalake.wormhole.codec.applications.generic_relayer import read_relayer
from permalake.wormhole.codec.applications.native_token_transfers import NTT_PREFIXES, read_ntt
from permalake.wormhole.codec.applications.transfer_payloads import read_connect, read_portico, read_recipient
from permalake.wormhole.codec.governance import GOVERNANCE_CHAIN, GOVERNANCE_EMITTER
from permalake.wormhole.codec.payload_reader import LayoutError, PayloadReader

UNKNOWN = "UNKNOWN"
NTT = "NATIVE_TOKEN_TRANSFER"
TOKEN_BRIDGE_APP, NFT_BRIDGE_APP = "PORTAL_TOKEN_BRIDGE", "PORTAL_NFT_BRIDGE"

ContractKey = tuple[str, int, bytes]
"""Role (``emitter`` or ``recipient`` of transfers with payload), chain and 32-byte address."""
Contracts = Mapping[ContractKey, "ApplicationContract"]


@dataclass(frozen=True)
class ApplicationContract:
    """A contract of an application, and the layout of what it emits or receives."""

    app_id: str
    layout: str


@dataclass(frozen=True)
class ApplicationMessage:
    """A message of an application; ``inner`` is the message that a delivery carries."""

    app_id: str
    kind: str
    fields: dict[str, Any] = field(default_factory=dict)
    inner: ApplicationMessage | None = None


_UNKNOWN = ApplicationMessage(UNKNOWN, "unknown")
_EMITTED: dict[str, Callable[[bytes], tuple[str, dict[str, Any]]]] = {
    "relayer": read_relayer,
    "circle": read_circle,
}
_RECEIVED: dict[str, Callable[[bytes], dict[str, Any]]] = {
    "connect": read_connect,
    "portico": read_portico,
    "recipient": read_recipient,
}
ROLES = ("emitter", "recipient")
LAYOUTS = {"emitter": tuple(_EMITTED), "recipient": tuple(_RECEIVED)}
"""Layouts that reference data may name, by role; the bridges' are added."""
_BRIDGE_KINDS = {1: "transfer", 2: "attestation", 3: "transfer_with_payload"}


def decode_application(
    chain: int, emitter: bytes, payload: bytes, contracts: Contracts
) -> ApplicationMessage:
    """Decode the payload of an emitter (Wormhole chain id, 32 bytes).

    A message of no known application, or one that does not fit its layout, is ``UNKNOWN``. The fields of
    bridge transfers are left to the bridges' own tables.
    """
    if (chain, emitter) == (GOVERNANCE_CHAIN, GOVERNANCE_EMITTER):
        return ApplicationMessage(UNKNOWN, "governance")
    try:
        contract = contracts.get(("emitter", chain, emitter))
        if contract is None:
            return _self_described(payload) or _UNKNOWN
        if contract.layout == "token_bridge":
            return _token_bridge(contract, payload, contracts)
        if contract.layout == "nft_bridge":
            return ApplicationMessage(contract.app_id, "transfer") if payload[:1] == b"\x01" else _UNKNOWN
        kind, fields = _EMITTED[contract.layout](payload)
        return ApplicationMessage(contract.app_id, kind, fields, _inner(fields))
    except LayoutError:
        return _UNKNOWN


def _self_described(payload: bytes) -> ApplicationMessage | None:
    return ApplicationMessage(NTT, *read_ntt(payload)) if payload[:4] in NTT_PREFIXES else None


def _inner(fields: dict[str, Any]) -> ApplicationMessage | None:
    try:
        return _self_described(bytes.fromhex(fields.get("payload", "")))
    except LayoutError:
        return None


def _token_bridge(contract: ApplicationContract, payload: bytes, contracts: Contracts) -> ApplicationMessage:
    reader = PayloadReader(payload)
    kind = _BRIDGE_KINDS.get(reader.number(1))
    if kind is None:
        return _UNKNOWN
    if kind != "transfer_with_payload":
        return ApplicationMessage(contract.app_id, kind)
    reader.raw(32 + 32 + 2)
    target, target_chain = reader.raw(32), reader.number(2)
    reader.word()
    application = contracts.get(("recipient", target_chain, target))
    if application is None:
        return ApplicationMessage(contract.app_id, kind)
    try:
        fields = _RECEIVED[application.layout](reader.rest())
    except LayoutError:
        return ApplicationMessage(contract.app_id, kind)
    return ApplicationMessage(application.app_id, kind, fields)
