"""VAAs signed by four guardians of the tests' own."""

from __future__ import annotations

import datetime as dt

from permalake_simulate.wormhole.encode_vaa import (
    encode_body,
    encode_transfer,
    encode_vaa,
    guardian_address,
    sign_body,
)

SET = 77
SECRETS = {n: bytes([n + 1]) * 32 for n in range(4)}
BRIDGE = bytes([9]) * 32
TOKEN = {"amount": 5, "origin_address": bytes(32), "origin_chain": 2}
PAYLOAD = encode_transfer(**TOKEN, target_address=bytes([1]) * 32, target_chain=4, fee=0)
GUARDIAN_SETS = [
    {
        "index": SET,
        "guardians": [{"pubkey": "0x" + guardian_address(secret).hex()} for secret in SECRETS.values()],
    }
]


def vaa(sequence, day, nonce=0, signers=4):
    """A transfer of the bridge at noon of a day, signed by the first guardians."""
    moment = dt.datetime(day.year, day.month, day.day, 12, tzinfo=dt.UTC)
    body = encode_body(
        timestamp=int(moment.timestamp()),
        nonce=nonce,
        emitter_chain=2,
        emitter_address=BRIDGE,
        sequence=sequence,
        consistency_level=1,
        payload=PAYLOAD,
    )
    return encode_vaa(SET, sign_body(body, {n: SECRETS[n] for n in range(signers)}), body)
