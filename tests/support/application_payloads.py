"""Made-up messages of every application, by the layouts that their contracts document."""

from __future__ import annotations

import base64
import json

from permalake.wormhole.reference import load_reference
from permalake_simulate.wormhole.encode_vaa import (
    encode_asset_meta,
    encode_body,
    encode_nft_transfer,
    encode_transfer,
    encode_transfer_with_payload,
)
from support.vaa_data import DATA

VECTORS = {
    row["name"]: bytes.fromhex(row["payload"])
    for row in json.loads((DATA / "wormhole" / "application_vectors.json").read_text())
}


def word(number):
    return number.to_bytes(32, "big")


def u64(number):
    return number.to_bytes(8, "big")


def unlock(order=1):
    return word(order) + b"\0\x1e" + word(2) + word(3)


def fulfill(promised=250_000_000, target_chain=4):
    told = unlock() + target_chain.to_bytes(2, "big") + word(4) + u64(promised) + u64(5) + u64(6)
    return b"\x01" + told + word(7) + b"\x08\x09" + word(10)


SWIFT = {
    "fulfill": fulfill(),
    "unlock": b"\x02" + unlock(),
    "refund": b"\x03" + unlock() + word(11) + u64(12) + u64(13),
    "batch_unlock": b"\x04\0\x02" + unlock() + unlock(20),
}
_CIRCLE = u64(14) + (3).to_bytes(4, "big")
MCTP = {
    "message_hash": word(15),
    "order": b"\x01\x01" + word(16),
    "bridge_with_fee": b"\x03\x01" + _CIRCLE + word(17) + u64(18) + u64(19),
    "unlock_fee": b"\x04\x01" + _CIRCLE + word(20) + u64(21),
    "unlock_fee_refined": b"\x05\x01" + _CIRCLE + word(20) + u64(21) + word(22),
}
CONNECT = b"\x01" + word(5) + word(6) + word(7)
GATEWAY_ACCOUNT = "osmo1w508d6qejxtdg4y5r3zarvary0c5xw7kjxy2e2"
"""The account is the key hash of BIP-173's examples."""
GATEWAY = b'{"gateway_transfer":{"chain":20,"recipient":"%s","fee":"0","nonce":1}}' % base64.b64encode(
    GATEWAY_ACCOUNT.encode()
)
RECEIVED = {
    **{"connect": CONNECT, "recipient": word(9), "gateway": GATEWAY},
    "portico": bytes(32) + b"".join(map(word, range(5))),
}


def transfer(target_chain, target, app_payload=None, amount=10**8):
    route = {"amount": amount, "origin_address": word(1), "origin_chain": 2}
    route |= {"target_address": target, "target_chain": target_chain}
    if app_payload is None:
        return encode_transfer(**route, fee=3)
    return encode_transfer_with_payload(**route, from_address=word(8), app_payload=app_payload)


def made_messages(contracts):
    """(layout, chain, emitter, payload) of at least one message per layout, all whole."""
    first = {}
    for (role, chain, address), contract in contracts.items():
        first.setdefault(contract.layout, (role, chain, address))
    bridge = first["token_bridge"][1:]
    emitted = {
        "relayer": [VECTORS["delivery"], VECTORS["delivery with a CCTP key"]],
        "circle": [VECTORS["transfer with relay"]],
        "mayan_swift": SWIFT.values(),
        "mayan_mctp": MCTP.values(),
        "unread": [b"anything"],
        "token_bridge": [
            transfer(4, word(3)),
            transfer(4, word(3), b"told"),
            encode_asset_meta(token_address=word(1), token_chain=2, decimals=6, symbol=b"S", name=b"N"),
        ],
        "nft_bridge": [
            encode_nft_transfer(
                origin_address=word(1),
                origin_chain=2,
                symbol=b"S",
                name=b"N",
                token_id=1,
                uri=b"u",
                target_address=word(2),
                target_chain=4,
            )
        ],
    }
    made = [(layout, *first[layout][1:], one) for layout, ones in emitted.items() for one in ones]
    for layout, told in RECEIVED.items():
        _, chain, address = first[layout]
        made.append((layout, *bridge, transfer(chain, address, told)))
    made += [("ntt", 2, word(99), one) for name, one in VECTORS.items() if name.startswith("transceiver")]
    return [*made, ("query_response", 2, word(99), VECTORS["query response"])]


def made_bodies(timestamp):
    """The bodies of VAAs with a message of every layout, by the contracts of the bundled reference data."""
    return [
        encode_body(
            timestamp=timestamp,
            nonce=0,
            emitter_chain=chain,
            emitter_address=emitter,
            sequence=sequence,
            consistency_level=1,
            payload=bytes(payload),
        )
        for sequence, (_, chain, emitter, payload) in enumerate(made_messages(load_reference().contracts()))
    ]
