"""Law of Merkle roots: computed again from the staged ids, they are those of the staged milestones."""

from __future__ import annotations

from collections.abc import Iterator

from permalake.audit.laws import each_row, violations
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


def _broken_roots(row: Row) -> Iterator[tuple[object, ...]]:
    """Find the roots of a milestone that differ from those of its messages.

    Chrysalis: one root over the included transactions' messages (TIP-4). Stardust: an inclusion root over all
    blocks and an applied root over those with an included transaction (TIP-29).
    """
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
        check=each_row(_broken_roots),
    ),
)
