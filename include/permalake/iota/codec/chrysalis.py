"""Chrysalis outputs (protocol 1), all of fixed width.

TIP-7: signature-locked single (0) and dust allowance (1), 42 bytes each; TIP-17: treasury (2), 9 bytes.
"""

from __future__ import annotations

import numpy as np

from permalake.arrays.cursor import I64, Cursor, bytes_at, disordered, duplicated
from permalake.iota.codec.faults import Fault
from permalake.iota.codec.outputs import DUST_ALLOWANCE, ED25519, SINGLE, TREASURY, Outputs

SUPPLY = 2_779_530_283_277_761
MIN_DUST_ALLOWANCE = 1_000_000
OUTPUT_WIDTH = 42


def read_outputs(cursor: Cursor, *, treasury: bool = False) -> Outputs:
    """Read one output from every row of ``cursor``; treasury outputs only if ``treasury`` is set."""
    start = cursor.position
    outputs = Outputs.blank(cursor.data, start, np.zeros(len(start), np.int64))
    kind = cursor.u8()
    outputs.kind[:] = kind
    owned = (kind == SINGLE) | (kind == DUST_ALLOWANCE)
    cursor.fail(~(owned | (treasury & (kind == TREASURY))), Fault.OUTPUT_KIND)
    rows = np.flatnonzero(owned)
    part = cursor.at(rows)
    address_kind = part.u8()
    part.fail(address_kind != ED25519, Fault.ADDRESS_KIND)
    outputs.address.put(rows, address_kind, part.bytes(32))
    cursor.put(rows, part)
    amount = cursor.u64()
    least = np.where(kind == DUST_ALLOWANCE, MIN_DUST_ALLOWANCE, np.where(kind == TREASURY, 0, 1))
    cursor.fail((amount > SUPPLY) | (amount < least.astype(np.uint64)), Fault.OUTPUT_AMOUNT)
    outputs.amount = np.where(cursor.fine, amount, 0).astype(np.int64)
    outputs.length = cursor.position - start
    outputs.error = cursor.error
    return outputs


def skip_output(cursor: Cursor) -> None:
    """Step over one output of a transaction."""
    cursor.fail(cursor.u8() > DUST_ALLOWANCE, Fault.OUTPUT_KIND)
    cursor.take(OUTPUT_WIDTH - 1)


def check_transaction_outputs(cursor: Cursor, transaction: I64, outputs: Outputs) -> None:
    """Check that the outputs of a transaction are sorted, unique by type and address, within the supply."""
    rows = len(cursor)
    raw = bytes_at(outputs.data, outputs.start, OUTPUT_WIDTH)
    cursor.fail(disordered(transaction, raw, rows, unique=False), Fault.OUTPUT_ORDER)
    cursor.fail(duplicated(transaction, raw[:, : OUTPUT_WIDTH - 8], rows), Fault.OUTPUT_DUPLICATE)
    total = np.zeros(rows, np.int64)
    np.add.at(total, transaction, outputs.amount)
    cursor.fail(total > SUPPLY, Fault.OUTPUT_SUM)
