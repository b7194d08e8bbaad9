"""What the bytes of Stardust outputs and of milestones say, read byte by byte, without the codec."""

from __future__ import annotations

from hashlib import blake2b

KINDS = {3: "basic", 4: "alias", 5: "foundry", 6: "nft"}
RETURN, TIMELOCK, EXPIRATION = 1, 2, 3
_ALIAS, _FOUNDRY, _NFT = 4, 5, 6


def facts(raw, text):
    """Columns of an output table by name (TIP-18); ``text(kind, value)`` writes an address."""
    kind, tokens = raw[0], raw[9]
    found, at = {"native_token_count": tokens}, 10 + 70 * tokens
    if kind == _ALIAS:
        found["state_index"], at = _uint(raw, at + 32, 4), at + 36
        at += 2 + _uint(raw, at, 2)
        found["foundry_counter"], at = _uint(raw, at, 4), at + 4
    elif kind == _FOUNDRY:
        found["serial_number"], at = _uint(raw, at, 4), at + 4 + 1 + 3 * 32
    elif kind == _NFT:
        at += 32
    if kind in (_ALIAS, _FOUNDRY):
        return found
    back = "dust_return_address" if kind == _NFT else "storage_return_address"
    found |= dict.fromkeys(("timelock_time", "expiration_time", "expiration_return_address"))
    found |= {back: None, "storage_return_amount": None}
    count, at = raw[at], at + 1
    for _ in range(count):
        condition, at = raw[at], at + 1
        if condition == TIMELOCK:
            found["timelock_time"], at = _uint(raw, at, 4), at + 4
            continue
        address, at = text(raw[at], raw[at + 1 : at + 33]), at + 33
        if condition == RETURN:
            found |= {back: address, "storage_return_amount": _uint(raw, at, 8)}
            at += 8
        elif condition == EXPIRATION:
            found |= {"expiration_return_address": address, "expiration_time": _uint(raw, at, 4)}
            at += 4
    return found


def milestone_id(payload, keys=()):
    """The hash of the payload (TIP-8); with ``keys``, the coordinator's, of a Stardust milestone's essence
    (TIP-29), which ends before the count of signatures: a type, a key and 64 bytes each."""
    count = 0
    while keys and payload[-97 * (count + 1)] == 0 and payload[1 - 97 * (count + 1) :][:32] in keys:
        count += 1
    signed = payload[4 : -1 - 97 * count] if keys else payload
    return blake2b(signed, digest_size=32).hexdigest()


def _uint(raw, at, size):
    return int.from_bytes(raw[at : at + size], "little")
