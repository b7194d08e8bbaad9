"""Receipts take from the treasury what they create (TIP-17), as far as the input proves the treasury."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest

from permalake.iota.cone.batch import ConeState
from permalake.iota.cone.decoded import ARROW, Row
from permalake.iota.cone.prove import decode, whole_milestones
from permalake.iota.cone.rules import ConeRules
from permalake.iota.cone.source_records import Record
from support import pure_archive
from support.iota_days import SYNTHETIC, expected

ROOT = SYNTHETIC / "chrysalis" / "archive"
FIRST_RECEIPT, RECEIPT, LEFT = 249_994, 250_000, 277_949_750_332_221
"""Milestones with a receipt, in two days; what the second receipt leaves."""


def problems(rows, days, **rules):
    order = [("milestone", "ascending"), ("kind", "ascending")]
    table = pa.Table.from_pylist(rows, pure_archive.SCHEMA).sort_by(order)
    told = ConeRules("chrysalis", "atoi", tuple(days), 249_992, **rules)
    out = []
    state = ConeState()
    for part in whole_milestones(table.to_batches()):
        out += list(decode(part, told, state))
    decoded = pa.Table.from_batches(out, ARROW).to_pylist()
    return {(row["milestone_index"], row["reason"]) for row in decoded if row["kind"] == Row.PROBLEM}


@pytest.fixture(scope="module")
def archive():
    return pure_archive.records(ROOT), pure_archive.days(ROOT)[0]


@pytest.mark.parametrize("taken", [0, 1])
def test_a_receipt_of_the_milestones_before_the_day_tells_the_treasury(archive, taken) -> None:
    rows, days = archive
    last = days[-1]
    near = [row | {"context": row["milestone"] < last.first} for row in rows]
    for row in near:
        if row["kind"] == Record.MILESTONE and row["milestone"] == RECEIPT:
            left, changed = LEFT.to_bytes(8, "little"), (LEFT - taken).to_bytes(8, "little")
            assert row["raw"].count(left) == 1
            row["raw"] = row["raw"].replace(left, changed)
    told = (RECEIPT, "receipt_amount")
    assert (told in problems(near, [last])) == bool(taken)
    own = [row for row in near if not row["context"] or row["milestone"] != FIRST_RECEIPT]
    assert told not in problems(own, [last])


def test_a_milestone_whose_time_steps_back_over_midnight_is_of_its_day(archive) -> None:
    rows, days = archive
    first = days[0]
    own = [row | {"context": False} for row in rows if row["milestone"] <= first.last]

    def late(days_later):
        moved = type(first)(first.date + timedelta(days=days_later), first.first, first.last)
        return {index for index, reason in problems(own, [moved]) if reason == "milestone_time"}

    assert late(0) == set()
    everything = set(range(first.first, first.last + 1))
    stepped_back = everything - late(1)
    times = {row["milestone_index"]: row["timestamp"] for row in expected("chrysalis", "milestones")}
    assert stepped_back == {index for index in everything if times[index] % 86_400 >= 82_800}
    assert late(2) == everything
