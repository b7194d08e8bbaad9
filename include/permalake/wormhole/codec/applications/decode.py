"""The application of a message, and its fields.

NTT's messages and query responses are recognized by their form, whoever emits them; the others by emitter,
and transfers with payload by the contract that receives them. Application ids are Wormholescan's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from permalake.wormhole.codec.applications.circle_integration import read_circle
from permalake.wormhole.codec.applications.generic_relayer import read_relayer
from permalake.wormhole.codec.applications.mayan import read_mctp, read_swift
from permalake.wormhole.codec.applications.native_token_transfers import NTT_PREFIXES, read_ntt
from permalake.wormhole.codec.applications.query_response import QUERY_PREFIX, read_query_response
from permalake.wormhole.codec.applications.transfer_payloads import (
    read_connect,
    read_gateway,
    read_portico,
    read_recipient,
)
from permalake.wormhole.codec.governance import GOVERNANCE_CHAIN, GOVERNANCE_EMITTER
from permalake.wormhole.codec.payload_fields import Fields
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
    """A message of an application.

    Attributes:
        layout: Layout by which it was read; None without an application.
        inner: The message that a delivery carries.
        carrier: Application whose message carries this one: the token bridge, of transfers with payload.
        is_listed: Whether the contract that speaks for the application is in the reference data; a message
            that only its form tells can come from anybody.
    """

    app_id: str
    kind: str
    fields: Fields = field(default_factory=dict)
    inner: ApplicationMessage | None = None
    layout: str | None = None
    carrier: str | None = None
    is_listed: bool = False

    @property
    def app_ids(self) -> list[str]:
        """All its applications as Wormholescan lists them, the carrying one first."""
        names = [self.carrier, self.app_id, self.inner.app_id if self.inner else None]
        return [name for name in names if name not in (None, UNKNOWN)]


_UNKNOWN = ApplicationMessage(UNKNOWN, "unknown")
_EMITTED: dict[str, Callable[[bytes], tuple[str, Fields]]] = {
    "relayer": read_relayer,
    "circle": read_circle,
    "ntt": read_ntt,
    "mayan_swift": read_swift,
    "mayan_mctp": read_mctp,
    "unread": lambda _: ("message", {}),
}
_RECEIVED: dict[str, Callable[[bytes], Fields]] = {
    "connect": read_connect,
    "portico": read_portico,
    "recipient": read_recipient,
    "gateway": read_gateway,
    "unread": lambda _: {},
}
ROLES = ("emitter", "recipient")
LAYOUTS = {"emitter": tuple(_EMITTED), "recipient": tuple(_RECEIVED)}
"""Layouts that reference data may name, by role; the bridges' are added."""
BRIDGE_KINDS = {1: "transfer", 2: "attestation", 3: "transfer_with_payload"}
_BRIDGE_SIZES = {1: 133, 2: 100, 3: 133}
_NFT_FIXED, _NFT_TARGET = 1 + 32 + 2 + 3 * 32, 32 + 2
FORMS = (*NTT_PREFIXES, QUERY_PREFIX)
"""Beginnings of messages that are recognized whoever emits them."""


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
            return _nft_bridge(contract, payload)
        kind, fields = _EMITTED[contract.layout](payload)
    except LayoutError:
        return _UNKNOWN
    inner = _delivered(chain, fields, contracts) if contract.layout == "relayer" else None
    return ApplicationMessage(contract.app_id, kind, fields, inner, contract.layout, is_listed=True)


def _self_described(payload: bytes, *, is_listed: bool = False) -> ApplicationMessage | None:
    if payload[:4] in NTT_PREFIXES:
        return ApplicationMessage(NTT, *read_ntt(payload), layout="ntt", is_listed=is_listed)
    if payload[:3] == QUERY_PREFIX:
        return ApplicationMessage(UNKNOWN, "query_response", read_query_response(payload))
    return None


def _delivered(chain: int, fields: Fields, contracts: Contracts) -> ApplicationMessage | None:
    """Return the message inside a delivery; who asked for the delivery speaks for it."""
    sender = contracts.get(("emitter", chain, bytes.fromhex(str(fields["sender_address"]))))
    if sender is not None and sender.layout == "unread":
        return ApplicationMessage(sender.app_id, "message", layout=sender.layout, is_listed=True)
    is_listed = sender is not None and sender.layout == "ntt"
    try:
        decoded = _self_described(bytes.fromhex(str(fields.get("payload", ""))), is_listed=is_listed)
    except LayoutError:
        return None
    return decoded if decoded and decoded.app_id != UNKNOWN else None


def _token_bridge(contract: ApplicationContract, payload: bytes, contracts: Contracts) -> ApplicationMessage:
    kind = BRIDGE_KINDS.get(payload[0]) if payload else None
    if kind is None or len(payload) < _BRIDGE_SIZES[payload[0]]:
        return _UNKNOWN
    plain = ApplicationMessage(contract.app_id, kind, layout=contract.layout, is_listed=True)
    if kind != "transfer_with_payload":
        return plain
    reader = PayloadReader(payload)
    reader.raw(1 + 32 + 32 + 2)
    target, target_chain = reader.raw(32), reader.number(2)
    reader.word()
    application = contracts.get(("recipient", target_chain, target))
    if application is None:
        return plain
    try:
        fields = _RECEIVED[application.layout](reader.rest())
    except LayoutError:
        return plain
    return ApplicationMessage(
        application.app_id,
        kind,
        fields,
        layout=application.layout,
        carrier=contract.app_id,
        is_listed=True,
    )


def _nft_bridge(contract: ApplicationContract, payload: bytes) -> ApplicationMessage:
    if payload[:1] != b"\x01" or len(payload) <= _NFT_FIXED:
        return _UNKNOWN
    if len(payload) < _NFT_FIXED + 1 + payload[_NFT_FIXED] + _NFT_TARGET:
        return _UNKNOWN
    return ApplicationMessage(contract.app_id, "transfer", layout=contract.layout, is_listed=True)
