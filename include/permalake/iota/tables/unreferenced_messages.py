"""Rows of ``unreferenced_messages``, from raw blocks that no milestone references yet."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime

import numpy as np
import pyarrow as pa

from permalake.iota.codec.blocks import decode_blocks
from permalake.iota.codec.outputs import Protocol
from permalake.iota.contracts.unreferenced import UNREFERENCED_MESSAGES

ROWS = UNREFERENCED_MESSAGES.nullable
"""Columns of the table, any of them nullable."""


def unreferenced_messages(blocks: Mapping[bytes, bytes], protocol: Protocol, seen_at: datetime) -> pa.Table:
    """Return the rows of well-formed blocks (bytes by id), without a place in the tangle yet."""
    raw = pa.array(blocks.values(), pa.binary())
    decoded = decode_blocks(raw, protocol)
    sound = np.flatnonzero(decoded.error == 0)
    ids = list(blocks)
    columns = {
        "message_id": pa.array([ids[row].hex() for row in sound.tolist()], pa.string()),
        "version": pa.array(decoded.version[sound].astype(np.int32)),
        "message": raw.take(pa.array(sound)),
        "seen_at": pa.repeat(pa.scalar(seen_at, ROWS.field("seen_at").type), len(sound)),
    }
    return pa.table(
        [columns.get(field.name, pa.nulls(len(sound), field.type)) for field in ROWS], schema=ROWS
    )


def above(rows: pa.Table, last: int, day: date) -> pa.Table:
    """Return rows as those above milestone ``last``; ``day`` is the first day that may have them."""
    estimate = pa.repeat(pa.scalar(last + 1, pa.int32()), rows.num_rows)
    dates = pa.repeat(pa.scalar(day, pa.date32()), rows.num_rows)
    estimated = rows.set_column(ROWS.get_field_index("est_milestone_index"), "est_milestone_index", estimate)
    return estimated.set_column(ROWS.get_field_index("date"), "date", dates)
