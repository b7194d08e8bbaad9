"""Signers of conflicting transactions: the ledger does not show whose funds they tried to move."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from permalake.arrays.cursor import blake2b_rows
from permalake.iota.codec.bech32 import encode_addresses
from permalake.iota.codec.outputs import ED25519
from permalake.iota.cone.arrow_lists import Lists, list_array
from permalake.iota.cone.batch import MilestoneBatch
from permalake.iota.cone.rules import ConeRules
from permalake.iota.cone.source_records import InclusionState

_SIGNATURE, _PUBLIC_KEY_AT, _WIDTH = 0, 2, 32


def signers(lists: Lists, batch: MilestoneBatch, rules: ConeRules) -> pa.ListArray | None:
    """Return the addresses that signed each row's conflicting transaction; None if there are none.

    An Ed25519 address is the BLAKE2b-256 hash of its public key (TIP-7).
    """
    transactions = batch.decoded.transactions
    unlocks = transactions.unlocks
    conflicts = (batch.blocks.state == InclusionState.CONFLICTING)[transactions.block]
    signature_rows = np.flatnonzero((unlocks.kind == _SIGNATURE) & conflicts[unlocks.transaction])
    if not len(signature_rows):
        return None
    keys = unlocks.start[signature_rows] + _PUBLIC_KEY_AT
    values = blake2b_rows(batch.decoded.data, keys, np.full(len(signature_rows), _WIDTH))
    texts = encode_addresses(rules.bech32_hrp, np.full(len(signature_rows), ED25519, np.int16), values)
    count, at = lists.of(unlocks.transaction[signature_rows])
    return list_array(count, texts.take(pa.array(at)), absent=count == 0)
