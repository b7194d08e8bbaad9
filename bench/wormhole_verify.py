"""Guardian signatures verified a second, beside bare recoveries of the same signatures by coincurve.

``python -m bench wormhole_verify``: real VAAs of mainnet, tiled, both on one core. Ours is the whole check
(recovery, address, guardian set, order, quorum, reasons), the peer recovers public keys and does nothing with
them.

What was tried: eth-keys' own backend (250 a second), coincurve's ``PublicKey`` objects (the peer), and
libsecp256k1 through coincurve's own binding without those objects and copies, which is what ours does.
"""

from __future__ import annotations

import json
import sys

from coincurve import PublicKey

from bench.wormhole_vaas import mainnet_vaas, seconds
from permalake.wormhole.codec.guardians import OK, verify
from permalake.wormhole.codec.vaa import decode_vaas
from permalake.wormhole.reference import load_reference

ROWS = 2_000


def run(rows: int = ROWS) -> dict:
    """Signatures a second."""
    vaas = decode_vaas(mainnet_vaas(rows))
    sets = load_reference().guardian_sets
    if not (verify(vaas, sets).reason == OK).all():
        sys.exit("bench wormhole_verify: a real VAA does not verify")
    signatures = [one.tobytes() for one in vaas.signature]
    digests = [vaas.digest[row].tobytes() for row in vaas.signature_row]
    recover = PublicKey.from_signature_and_message

    def bare() -> None:
        for signature, digest in zip(signatures, digests, strict=True):
            recover(signature, digest, hasher=None)

    ours, theirs = seconds(lambda: verify(vaas, sets), 3), seconds(bare, 3)
    return {
        "name": "guardian signatures verified, one core",
        "unit": "signatures/s",
        "rows": len(signatures),
        "ours": round(len(signatures) / ours),
        "peer": round(len(signatures) / theirs),
        "peer_name": "bare coincurve recovery",
        "ratio": round(theirs / ours, 3),
    }


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS), indent=1))
