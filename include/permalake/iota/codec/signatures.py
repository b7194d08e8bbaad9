"""Ed25519 signatures of transactions (TIP-7, TIP-20)."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

from permalake.arrays.cursor import I64, Mask
from permalake.iota.codec.blocks import Blocks
from permalake.iota.codec.ed25519 import is_valid


def valid_signatures(blocks: Blocks, unlocks: I64) -> Mask:
    """Return which of some signature unlocks are valid signatures of their essence.

    Whether a key owns the input that it unlocks is not checked here.

    Args:
        blocks: The blocks.
        unlocks: Rows of the blocks' unlocks, ascending.
    """
    transactions, data = blocks.transactions, blocks.data
    starts = transactions.unlocks.start[unlocks].tolist()
    owners = transactions.unlocks.transaction[unlocks].tolist()
    essence_start, essence_length = transactions.essence_start, transactions.essence_length
    right = np.ones(len(unlocks), bool)
    last, digest = -1, b""
    for at, (owner, start) in enumerate(zip(owners, starts, strict=True)):
        if owner != last:
            begin = int(essence_start[owner])
            essence = data[begin : begin + int(essence_length[owner])].tobytes()
            last, digest = owner, blake2b(essence, digest_size=32).digest()
        unlock = data[start + 2 : start + 98].tobytes()
        right[at] = is_valid(unlock[:32], unlock[32:], digest)
    return right
