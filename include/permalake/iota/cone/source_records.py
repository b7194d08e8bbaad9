"""The record frame: what every IOTA source hands to the cone, one row per milestone, block or ledger change.

A source only reads. Ids, states and orders in a record are the source's claims; the cone
(:mod:`permalake.iota.cone.prove`) proves them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import IntEnum

from pyspark.sql import types as t

# How many milestones back a cone may reach. Nodes accept a parent whose cone root is below_max_depth (15)
# milestones old when the block is attached; a milestone may reference that block some milestones later.
LOOK_BACK = 40
# Seconds by which a Chrysalis milestone may be earlier than the one before it.
STEP_BACK = 3_600


class Record(IntEnum):
    """Kinds of records, in the order in which the cone wants them within a milestone."""

    MILESTONE = (
        0  # id milestone id, raw payload with its u32 type, link carrying message id, number cone size
    )
    BLOCK = 1  # id block id, raw bytes, state, conflict, number white-flag index
    CONSUMED = 2  # id output id, raw output, link spending transaction id; all that included ones consume
    CHANGES = 3  # raw created output ids, link consumed output ids (34 bytes each, concatenated)
    MALFORMED = 4  # raw the line as it was read, link why it is no record (UTF-8)


class InclusionState(IntEnum):
    """Ledger inclusion state of a block, as the tables have it.

    A source that does not know it leaves it null: then the transactions that CONSUMED records name as
    spending (the first message of each, in white-flag order) are the included ones.
    """

    CONFLICTING = 0
    INCLUDED = 1
    NO_TRANSACTION = 2


INCLUSION_STATES = {
    "conflicting": InclusionState.CONFLICTING,
    "included": InclusionState.INCLUDED,
    "noTransaction": InclusionState.NO_TRANSACTION,
}
"""By what a node's REST API calls them."""


RECORD = t.StructType(
    [
        t.StructField("kind", t.ByteType(), False),
        t.StructField("milestone", t.IntegerType(), False),
        t.StructField("id", t.BinaryType()),
        t.StructField("raw", t.BinaryType()),
        t.StructField("link", t.BinaryType()),
        t.StructField("state", t.ByteType()),
        t.StructField("conflict", t.ShortType()),
        t.StructField("number", t.IntegerType()),
        t.StructField("origin", t.StringType()),
    ]
)


@dataclass(frozen=True, slots=True)
class MilestoneDay:
    """Milestones of a UTC date, first and last inclusive.

    ``gaps`` are absent indexes, inclusive; ``fault`` is why the day cannot be published whatever its cones
    are. A day without usable milestones has ``last`` below ``first``.
    """

    date: date
    first: int
    last: int
    gaps: tuple[tuple[int, int], ...] = ()
    fault: str | None = None

    @property
    def has_milestones(self) -> bool:
        """Whether there is anything to read."""
        return self.last >= self.first


def utc_date(moment: int) -> date:
    """Return the UTC date of a time (unix s, below 2^32)."""
    return datetime.fromtimestamp(moment, UTC).date()
