"""Law of Merkle roots: computed again from the staged ids, they are those of the staged milestones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from permalake.audit.laws import violations
from permalake.audit.scope import Scope
from permalake.iota.codec.faults import DecodeError
from permalake.iota.codec.merkle import merkle_root
from permalake.iota.codec.milestones import decode_milestone

_SCHEMA = "date date, place string, expected string, found string"
_TYPE_OF_CHRYSALIS = (1).to_bytes(4, "little")
_INCLUDED = 1


def _broken_roots(scope: Scope) -> DataFrame:
    """Return the milestones whose roots differ from those of their messages.

    Chrysalis: one root over the included transactions' messages (TIP-4). Stardust: an inclusion root over all
    blocks and an applied root over those with an included transaction (TIP-29).
    """
    row = F.struct("white_flag_index", "inclusion_state", F.unhex("message_id").alias("id"))
    cones = (
        scope("messages")
        .groupBy("date", "milestone_index")
        .agg(F.sort_array(F.collect_list(row)).alias("cone"))
    )
    milestones = scope("milestones").select("date", "milestone_index", "payload")
    return milestones.join(cones, ["date", "milestone_index"], "left").mapInArrow(_check, _SCHEMA)


def _check(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = [wrong for row in batch.to_pylist() for wrong in _wrong(row)]
        columns = [pa.array(column) for column in zip(*rows, strict=True)]
        if rows:
            yield pa.RecordBatch.from_arrays(columns, names=["date", "place", "expected", "found"])


def _wrong(row: dict[str, Any]) -> Iterator[tuple[object, ...]]:
    payload = bytes(row["payload"])
    is_chrysalis = payload[:4] == _TYPE_OF_CHRYSALIS
    place = f"milestone {row['milestone_index']}"
    try:
        milestone = decode_milestone(payload, "chrysalis" if is_chrysalis else "stardust")
    except DecodeError as error:
        yield row["date"], place, "a milestone", str(error)
        return
    cone = row["cone"] or []
    applied = [bytes(one["id"]) for one in cone if one["inclusion_state"] == _INCLUDED]
    roots = [("applied", milestone.applied_root, applied)]
    if milestone.inclusion_root is not None:
        roots.append(("inclusion", milestone.inclusion_root, [bytes(one["id"]) for one in cone]))
    for name, signed, ids in roots:
        found = merkle_root(ids)
        if found != signed:
            yield row["date"], f"{place} {name} root", signed.hex(), found.hex()


LAWS = (
    violations(
        "roots_match",
        "messages",
        "Ids in white-flag order lead to the Merkle roots that the milestone was signed with.",
        _broken_roots,
    ),
)
