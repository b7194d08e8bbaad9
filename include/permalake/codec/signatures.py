"""Ed25519 signatures of transactions (TIP-7, TIP-20)."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from permalake.codec.blocks import Blocks
from permalake.codec.cursor import Mask
from permalake.codec.transactions import SIGNATURE


def wrongly_signed(blocks: Blocks) -> Mask:
    """Which of the blocks' transactions (bool[t]) hold a signature that is not one of their essence.

    Whether a key owns the input that it unlocks is the ledger's question, not asked here.
    """
    transactions, data = blocks.transactions, blocks.data
    wrong = np.zeros(len(transactions), bool)
    signed = np.flatnonzero(transactions.unlocks.kind == SIGNATURE)
    starts = transactions.unlocks.start[signed].tolist()
    owners = transactions.unlocks.transaction[signed].tolist()
    essence_start, essence_length = transactions.essence_start, transactions.essence_length
    last, digest = -1, b""
    for owner, start in zip(owners, starts, strict=True):
        if owner != last:
            begin = int(essence_start[owner])
            essence = data[begin : begin + int(essence_length[owner])].tobytes()
            last, digest = owner, blake2b(essence, digest_size=32).digest()
        unlock = data[start + 2 : start + 98].tobytes()
        try:
            Ed25519PublicKey.from_public_bytes(unlock[:32]).verify(unlock[32:], digest)
        except (InvalidSignature, ValueError):
            wrong[owner] = True
    return wrong
