"""What the bytes of Stardust outputs and of milestones say, read byte by byte, without the codec."""

from __future__ import annotations

import json
from hashlib import blake2b

KINDS = {3: "basic", 4: "alias", 5: "foundry", 6: "nft"}
ADDRESS, RETURN, TIMELOCK, EXPIRATION, STATE_CONTROLLER, GOVERNOR, IMMUTABLE_ALIAS = range(7)
METADATA, TAG = 2, 3
_BASIC, _ALIAS, _FOUNDRY, _NFT = 3, 4, 5, 6


class _Reader:
    def __init__(self, raw):
        self.raw, self.at = raw, 0

    def take(self, size):
        self.at += size
        return self.raw[self.at - size : self.at]

    def uint(self, size):
        return int.from_bytes(self.take(size), "little")


def native_tokens(raw):
    """(token id in hex, amount) of every native token that an output holds (TIP-18)."""
    tokens = (raw[at : at + 70] for at in range(10, 10 + 70 * raw[9], 70)) if raw[0] in KINDS else ()
    return [(token[:38].hex(), int.from_bytes(token[38:], "little")) for token in tokens]


def facts(raw, text):
    """Columns of an output table by name (TIP-18); ``text(kind, value)`` writes an address."""
    kind, reader = raw[0], _Reader(raw)
    found = {"native_token_count": raw[9]}
    reader.at = 10 + 70 * raw[9]
    if kind == _ALIAS:
        reader.take(32)
        found["state_index"] = reader.uint(4)
        found["state_metadata"] = reader.take(reader.uint(2)).hex() or None
        found["foundry_counter"] = reader.uint(4)
    elif kind == _FOUNDRY:
        found["serial_number"] = reader.uint(4)
        reader.take(1)
        for name in ("minted_tokens", "melted_tokens", "maximum_supply"):
            found[name] = str(reader.uint(32))
    elif kind == _NFT:
        reader.take(32)
    found |= _conditions(reader, text, kind)
    if kind == _BASIC:
        return found
    found["metadata"] = _metadata(reader)
    found["immutable_metadata"] = _metadata(reader)
    told = json.loads(bytes.fromhex(found["immutable_metadata"] or b"{}".hex()))
    if kind == _NFT:
        names = {"collection_name": "collectionName", "nft_name": "name", "nft_uri": "uri"}
        found |= {column: told.get(name) for column, name in names.items()}
    elif kind == _FOUNDRY:
        found |= {f"token_{name}": told.get(name) for name in ("name", "symbol", "decimals")}
    return found


def _conditions(reader, text, kind):
    back = "dust_return_address" if kind == _NFT else "storage_return_address"
    found = dict.fromkeys(("timelock_time", "expiration_time", "expiration_return_address"))
    found |= {back: None, "storage_return_amount": None}
    for _ in range(reader.uint(1)):
        condition = reader.uint(1)
        if condition == TIMELOCK:
            found["timelock_time"] = reader.uint(4)
            continue
        address = text(reader.uint(1), reader.take(32))
        if condition == RETURN:
            found |= {back: address, "storage_return_amount": reader.uint(8)}
        elif condition == EXPIRATION:
            found |= {"expiration_return_address": address, "expiration_time": reader.uint(4)}
    return found if kind in (_BASIC, _NFT) else {}


def _metadata(reader):
    """Metadata of the features that follow, in hex."""
    found = None
    for _ in range(reader.uint(1)):
        feature = reader.uint(1)
        if feature == METADATA:
            found = reader.take(reader.uint(2)).hex()
        elif feature == TAG:
            reader.take(reader.uint(1))
        else:
            reader.take(33)
    return found


def milestone_id(payload, keys=()):
    """The hash of the payload (TIP-8); with ``keys``, the coordinator's, of a Stardust milestone's essence
    (TIP-29), which ends before the count of signatures: a type, a key and 64 bytes each."""
    count = 0
    while keys and payload[-97 * (count + 1)] == 0 and payload[1 - 97 * (count + 1) :][:32] in keys:
        count += 1
    signed = payload[4 : -1 - 97 * count] if keys else payload
    return blake2b(signed, digest_size=32).hexdigest()
