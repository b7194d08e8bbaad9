"""Law of Merkle roots: computed again from the staged ids, they are those of the staged milestones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from permalake.audit.laws import violations
from permalake.contracts.rows import Row
from permalake.iota.codec.faults import DecodeError
from permalake.iota.codec.merkle import merkle_root
from permalake.iota.codec.milestones import decode_milestone

_TYPE_OF_CHRYSALIS = (1).to_bytes(4, "little")
_INCLUDED = "1"
_ORDER = 10
"""Digits of a position in white-flag order, so that its text sorts as the number."""

_CONES = f"""
SELECT milestones.date AS date, milestones.milestone_index AS milestone_index, milestones.payload AS payload,
    cones.cone AS cone
FROM milestones AS milestones LEFT JOIN (
    SELECT date, milestone_index, array_agg(
        lpad(CAST(white_flag_index AS STRING), {_ORDER}, '0') || inclusion_state || ' ' || message_id
    ) AS cone
    FROM messages GROUP BY date, milestone_index
) AS cones ON milestones.date = cones.date AND milestones.milestone_index = cones.milestone_index
"""
"""Milestones, each with its messages: position, state and id in one text."""


def _broken_roots(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Find the milestones whose roots differ from those of their messages.

    Chrysalis: one root over the included transactions' messages (TIP-4). Stardust: an inclusion root over all
    blocks and an applied root over those with an included transaction (TIP-29).
    """
    for batch in batches:
        rows = [wrong for row in batch.to_pylist() for wrong in _wrong(row)]
        columns = [pa.array(column) for column in zip(*rows, strict=True)]
        if rows:
            yield pa.RecordBatch.from_arrays(columns, names=["date", "place", "expected", "found"])


def _wrong(row: Row) -> Iterator[tuple[object, ...]]:
    payload = bytes(row["payload"])
    is_chrysalis = payload[:4] == _TYPE_OF_CHRYSALIS
    place = f"milestone {row['milestone_index']}"
    try:
        milestone = decode_milestone(payload, "chrysalis" if is_chrysalis else "stardust")
        cone = [(state, bytes.fromhex(name)) for state, name in _in_order(row["cone"])]
    except (DecodeError, ValueError) as error:
        yield row["date"], place, "a milestone", str(error)
        return
    roots = [("applied", milestone.applied_root, [name for state, name in cone if state == _INCLUDED])]
    if milestone.inclusion_root is not None:
        roots.append(("inclusion", milestone.inclusion_root, [name for _, name in cone]))
    for which, signed, ids in roots:
        root = merkle_root(ids)
        if root != signed:
            yield row["date"], f"{place} {which} root", signed.hex(), root.hex()


def _in_order(cone: list[str | None] | None) -> Iterator[list[str]]:
    """Yield state and id of messages in white-flag order; those that lack one are left out."""
    for numbered in sorted(filter(None, cone or [])):
        yield numbered[_ORDER:].split(" ")


LAWS = (
    violations(
        "roots_match",
        "messages",
        "Ids in white-flag order lead to the Merkle roots that the milestone was signed with.",
        _CONES,
        check=_broken_roots,
    ),
)
