"""Governance messages: instructions of the guardians to the contracts.

Header (wormhole-foundation/wormhole, ``whitepapers/0002_governance_messaging.md``): module, 32 bytes with
NULs on the left; action u8; target chain u16, 0 for all. What follows depends on module and action
(:mod:`~permalake.wormhole.codec.governance_layouts`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from permalake.wormhole.codec.governance_layouts import GOVERNANCE_LAYOUTS, RECOVER_CHAIN_ID
from permalake.wormhole.codec.payload_fields import Fields
from permalake.wormhole.codec.payload_reader import LayoutError, PayloadReader
from permalake.wormhole.codec.vaa import Bool, Vaas

GOVERNANCE_CHAIN = 1
GOVERNANCE_EMITTER = bytes(31) + b"\x04"
_MODULE_SIZE = 32


@dataclass(frozen=True)
class Governance:
    """A decoded governance message; ``action_name`` is None where the layout is unknown or does not fit."""

    module: str
    action: int
    action_name: str | None
    target_chain: int
    fields: Fields = field(default_factory=dict)


def is_governance(vaas: Vaas) -> Bool:
    """Return which VAAs come from the governance emitter, bool[n]."""
    emitter = np.frombuffer(GOVERNANCE_EMITTER, np.uint8)
    same: Bool = (vaas.emitter_address == emitter).all(axis=1)
    governing: Bool = vaas.has_body & (vaas.emitter_chain == GOVERNANCE_CHAIN) & same
    return governing


def decode_governance(payload: bytes) -> Governance | None:
    """Decode a payload of the governance emitter; return None if it has no governance header.

    Bytes after a complete message are ignored.
    """
    module = _module(payload[:_MODULE_SIZE])
    if module is None or len(payload) <= _MODULE_SIZE:
        return None
    action, reader = payload[_MODULE_SIZE], PayloadReader(payload[_MODULE_SIZE + 1 :])
    name, read = GOVERNANCE_LAYOUTS.get(module, {}).get(action, (None, None))
    try:
        if name == RECOVER_CHAIN_ID and read:
            # It names no target chain: it is for the fork with that EVM chain id.
            fields = read(reader, 0)
            return Governance(module, action, name, reader.number(2), fields)
        chain = reader.number(2)
    except LayoutError:
        return None
    try:
        return Governance(module, action, name, chain, read(reader, chain) if read else {})
    except LayoutError:
        return Governance(module, action, None, chain)


def _module(padded: bytes) -> str | None:
    name = padded.lstrip(b"\0")
    text = name.decode("ascii", "replace")
    return text if name.isascii() and text.isprintable() and text else None
