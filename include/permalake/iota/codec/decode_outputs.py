"""Outputs that stand alone, such as those that a ledger consumed, to columns."""

from __future__ import annotations

from permalake.arrays.cursor import Binary, Cursor, load
from permalake.iota.codec.faults import Fault
from permalake.iota.codec.layout import LAYOUTS
from permalake.iota.codec.outputs import Outputs, Protocol


def decode_outputs(raw: Binary, protocol: Protocol) -> Outputs:
    """Decode one output per row of ``raw``, treasury outputs included.

    A malformed row has a non-zero ``error``; its other columns are meaningless.
    """
    data, start, length = load(raw)
    cursor = Cursor(data, start.copy(), start + length)
    outputs = LAYOUTS[protocol].read_outputs(cursor, treasury=True)
    cursor.fail(cursor.position != cursor.end, Fault.TRAILING)
    outputs.error, outputs.length = cursor.error, length
    return outputs
