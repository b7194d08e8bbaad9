"""The proving pass, fault by fault, on synthetic tangles; decoded in this process, without Spark jobs."""

from dataclasses import replace
from datetime import date

import pyarrow as pa
import pytest

from permalake.iota.cone import prove
from permalake.iota.cone.batch import ConeState
from permalake.iota.cone.decoded import Row
from permalake.iota.cone.packs import Chunks, unpacked
from permalake.iota.cone.prove import decoded_or_refused, whole_milestones
from permalake.iota.cone.rules import ConeRules
from permalake.iota.cone.source_records import Record
from permalake.iota.cone.verdict import refused_days
from permalake.iota.cone.white_flag import white_flag_order
from permalake.iota.sources.archive_rest import ArchiveRest
from support.iota_days import SYNTHETIC, coordinator_keys, tangle

FIRST, LAST = 249_992, 250_007
SPANS = {
    "stardust": (date(2022, 9, 28), date(2022, 9, 30)),
    "chrysalis": (date(2021, 5, 10), date(2021, 5, 12)),
}


class World:
    """The records of a synthetic tangle as rows, to be spoilt, and its rules."""

    def __init__(self, spark, protocol, keys=True):
        source = ArchiveRest(spark, SYNTHETIC / protocol / "archive")
        days = source.days(*SPANS[protocol])
        packs = source.records(days, Chunks(FIRST, 64, 1, 40)).sort("place").toArrow()
        self.table = pa.Table.from_batches(unpacked(packs.to_batches()))
        self.spark, self.protocol, self.days = spark, protocol, tuple(days)
        self.keys = coordinator_keys(protocol)

    def rules(self, **given):
        base = {"source_first": FIRST, "keys": self.keys, "threshold": 2}
        return ConeRules(self.protocol, tangle(self.protocol)["bech32_hrp"], self.days, **(base | given))

    def rows(self):
        return self.table.to_pylist()

    def run(self, rows=None, size=None, **given):
        """(decoded rows, problems as (milestone, reason)) of the given records."""
        table = self.table if rows is None else pa.Table.from_pylist(rows, self.table.schema)
        table = table.sort_by([("milestone", "ascending"), ("kind", "ascending")])
        state, rules, found = ConeState(), self.rules(**given), []
        for part in whole_milestones(table.to_batches(max_chunksize=size or 10_000)):
            rows, state = decoded_or_refused(part, rules, state)
            found.append(rows)
        out = pa.concat_tables(found).to_pylist()
        problems = [row for row in out if row["kind"] == Row.PROBLEM]
        return [row for row in out if row["kind"] != Row.PROBLEM], problems


@pytest.fixture(scope="module", params=["stardust", "chrysalis"])
def world(request, spark):
    return World(spark, request.param)


@pytest.fixture(scope="module")
def stardust(spark):
    return World(spark, "stardust")


@pytest.fixture(scope="module")
def chrysalis(spark):
    return World(spark, "chrysalis")


def causes(problems):
    return [(row["milestone_index"], row["reason"]) for row in problems if row["breaks"]]


def pick(rows, kind, where=lambda row: True):
    return next(row for row in rows if row["kind"] == kind and where(row))


def flip(row, at=40, field="raw") -> None:
    spoilt = bytearray(row[field])
    spoilt[at] ^= 1
    row[field] = bytes(spoilt)


def is_included(row):
    return row["state"] == 1


def test_a_sound_tangle_has_no_problem(world) -> None:
    _, problems = world.run()
    assert problems == []


@pytest.mark.parametrize("size", [1, 7, 40])
def test_rows_do_not_depend_on_how_records_are_batched(world, size) -> None:
    def key(row):
        return row["milestone_index"], row["kind"], row["white_flag_index"] or 0

    whole, _ = world.run()
    parts, problems = world.run(size=size)
    assert problems == []
    assert sorted(parts, key=key) == sorted(whole, key=key)


def test_order_and_repetition_of_records_change_nothing(world) -> None:
    rows = world.rows()
    whole, _ = world.run()
    again, problems = world.run([*rows[::-1], *rows[::3]])
    assert problems == []
    assert again == whole


def test_a_flipped_byte_is_named_first(world) -> None:
    rows = world.rows()
    spoilt = pick(rows, Record.BLOCK, lambda row: row["milestone"] == FIRST + 3)
    flip(spoilt)
    _, problems = world.run(rows)
    assert causes(problems)[0] == (FIRST + 3, "id_mismatch")
    assert problems[0]["raw"] == spoilt["raw"]
    assert spoilt["id"].hex() in problems[0]["detail"]
    assert problems[0]["origin"].startswith(("blocks.jsonl", "messages.jsonl"))


def test_a_missing_block_breaks_its_milestone_even_among_entry_points(world) -> None:
    rows = world.rows()
    rows.remove(pick(rows, Record.BLOCK, lambda row: row["milestone"] == FIRST + 2))
    _, problems = world.run(rows)
    assert {milestone for milestone, _ in causes(problems)} == {FIRST + 2}


def test_a_missing_parent_is_named_once_the_source_has_begun(world) -> None:
    _, complete = world.run(source_first=FIRST - 100)
    reached_back = {m for m, reason in causes(complete) if reason == "parent_missing"}
    rows = world.rows()
    whole, _ = world.run()
    parents = {p for row in whole for p in row["parents"] or () if row["milestone_index"] == LAST}
    parent = pick(rows, Record.BLOCK, lambda row: row["milestone"] == LAST and row["id"] in parents)
    rows.remove(parent)
    _, problems = world.run(rows, source_first=FIRST - 100)
    assert LAST not in reached_back
    missing = [row for row in problems if row["milestone_index"] == LAST]
    assert missing[0]["reason"] == "parent_missing"
    assert parent["id"].hex() in missing[0]["detail"]


def test_a_block_of_another_cone_is_refused(world) -> None:
    rows = world.rows()
    stray = dict(pick(rows, Record.BLOCK, lambda row: row["milestone"] == FIRST + 5))
    _, problems = world.run([*rows, stray | {"milestone": FIRST + 6}])
    assert (FIRST + 6, "not_in_cone") in causes(problems)


def test_a_missing_milestone_is_a_gap(world) -> None:
    rows = [row for row in world.rows() if row["milestone"] != FIRST + 4]
    _, problems = world.run(rows)
    assert (FIRST + 5, "milestone_gap") in causes(problems)


def test_blocks_without_their_milestone_are_refused(world) -> None:
    rows = world.rows()
    rows.remove(pick(rows, Record.MILESTONE, lambda row: row["milestone"] == FIRST + 4))
    _, problems = world.run(rows)
    assert (FIRST + 4, "milestone_missing") in causes(problems)


def test_a_milestone_must_be_signed_by_the_coordinator(world) -> None:
    _, problems = world.run(keys=world.keys[:1])
    assert set(causes(problems)) == {(m, "milestone_signature") for m in range(FIRST, LAST + 1)}
    rows = world.rows()
    flip(pick(rows, Record.MILESTONE, lambda row: row["milestone"] == FIRST + 1), at=-1)
    _, problems = world.run(rows, keys=(), threshold=None)
    assert (FIRST + 1, "milestone_signature") in causes(problems)


def test_coordinator_keys_have_ranges_and_a_threshold(world) -> None:
    _, problems = world.run(threshold=3)
    assert set(causes(problems)) == {(m, "milestone_signature") for m in range(FIRST, LAST + 1)}
    # The second key signs up to 250,000; put to an end earlier, what it signed after that does not count.
    retired = [key.model_copy(update={"end": 249_997}) if key.end == 250_000 else key for key in world.keys]
    _, problems = world.run(keys=tuple(retired))
    assert set(causes(problems)) == {(m, "milestone_signature") for m in range(249_998, 250_001)}
    _, problems = world.run(keys=(), threshold=None)
    assert problems == []


def test_a_key_range_has_its_own_threshold(world) -> None:
    strict = [key.model_copy(update={"threshold": 3}) if key.end == 250_000 else key for key in world.keys]
    _, problems = world.run(keys=tuple(strict))
    assert set(causes(problems)) == {(m, "milestone_signature") for m in range(FIRST, 250_001)}
    mild = [key.model_copy(update={"threshold": 2}) for key in world.keys]
    assert world.run(keys=tuple(mild), threshold=9)[1] == []


def test_a_gap_is_an_error_that_names_the_range(stardust) -> None:
    days = [replace(day, gaps=((250_001, 250_003), (250_005, 250_005))) for day in stardust.days[-1:]]
    assert refused_days([], days) == {
        days[0].date: "milestone 250001: milestone_gap: the source lacks milestones 250001 to 250003, 250005 "
        f"of {days[0].date}"
    }


@pytest.mark.parametrize(("ahead", "missing"), [(40, False), (41, True)])
def test_an_absent_parent_is_an_entry_point_within_look_back(world, ahead, missing) -> None:
    """A milestone's cone may refer to blocks from look_back milestones before the source begins."""
    begins = FIRST - ahead
    _, problems = world.run(source_first=begins)
    reasons = {reason for milestone, reason in causes(problems) if milestone == FIRST}
    assert ("parent_missing" in reasons) == missing


def test_a_parent_at_the_greatest_distance_is_valid_and_one_beyond_it_is_named(world) -> None:
    rows, whole = world.rows(), world.run()[0]
    at = {row["message_id"]: row["milestone_index"] for row in whole if row["message_id"] and row["parents"]}
    reach = {}
    for row in whole:
        for parent in row["parents"] or ():
            if parent in at:
                reach[row["milestone_index"]] = max(
                    reach.get(row["milestone_index"], 0), row["milestone_index"] - at[parent]
                )
    furthest = max(reach.values())
    assert furthest >= 2
    assert causes(world.run(rows, look_back=furthest)[1]) == []
    _, problems = world.run(rows, look_back=furthest - 1, source_first=FIRST)
    beyond = [row for row in problems if row["reason"] == "parent_missing"]
    assert {row["milestone_index"] for row in beyond} == {m for m, far in reach.items() if far == furthest}
    assert f"{furthest} milestones before it; a cone reaches back {furthest - 1}" in beyond[0]["detail"]


def test_two_payloads_of_one_milestone_are_refused(world) -> None:
    rows = world.rows()
    other = dict(pick(rows, Record.MILESTONE))
    flip(other, at=-1)
    _, problems = world.run([*rows, other])
    assert (FIRST, "milestone_conflict") in causes(problems)


@pytest.mark.parametrize(
    ("claim", "reason"), [({"state": 2}, "inclusion_state"), ({"state": 0, "conflict": 1}, "applied_root")]
)
def test_inclusion_is_proven(world, claim, reason) -> None:
    rows = world.rows()
    pick(rows, Record.BLOCK, is_included).update(claim)
    _, problems = world.run(rows)
    assert causes(problems)[0] == (FIRST, reason)


def test_white_flag_index_and_cone_size_are_compared(stardust) -> None:
    rows = stardust.rows()
    pick(rows, Record.BLOCK, lambda row: row["number"] == 3)["number"] = 4
    pick(rows, Record.MILESTONE, lambda row: row["milestone"] == LAST)["number"] = 99
    _, problems = stardust.run(rows)
    assert causes(problems) == [(FIRST, "white_flag_order"), (LAST, "cone_size")]


def test_the_milestone_before_is_linked(stardust) -> None:
    rows = stardust.rows()
    flip(pick(rows, Record.MILESTONE, lambda row: row["milestone"] == FIRST + 2), at=8)
    _, problems = stardust.run(rows)
    assert (FIRST + 3, "milestone_link") in causes(problems)
    assert FIRST + 4 not in {milestone for milestone, _ in causes(problems)}


def test_consumed_outputs_are_exactly_the_inputs(world) -> None:
    rows = world.rows()
    gone = pick(rows, Record.CONSUMED, lambda row: row["milestone"] == FIRST)
    rows.remove(gone)
    _, problems = world.run(rows)
    assert causes(problems)[0] == (FIRST, "consumed_missing")
    assert gone["id"].hex() in problems[0]["detail"]
    rows = [*world.rows(), gone | {"id": bytes(34)}]
    _, problems = world.run(rows)
    assert causes(problems) == [(FIRST, "consumed_unexpected")]


def test_a_forged_consumed_output_is_found(stardust, chrysalis) -> None:
    rows = stardust.rows()
    flip(pick(rows, Record.CONSUMED), at=-10)
    assert "inputs_commitment" in {reason for _, reason in causes(stardust.run(rows)[1])}
    # Chrysalis has no inputs commitment: the owner's key and the sum of the amounts tell.
    rows = chrysalis.rows()
    flip(pick(rows, Record.CONSUMED), at=10)
    assert "transaction_signature" in {reason for _, reason in causes(chrysalis.run(rows)[1])}
    rows = chrysalis.rows()
    flip(pick(rows, Record.CONSUMED), at=-8)
    assert "amount_mismatch" in {reason for _, reason in causes(chrysalis.run(rows)[1])}


def test_signatures_of_transactions_are_optional(chrysalis) -> None:
    rows = chrysalis.rows()
    flip(pick(rows, Record.CONSUMED), at=10)  # its owner is another one then
    assert "transaction_signature" in {reason for _, reason in causes(chrysalis.run(rows)[1])}
    assert causes(chrysalis.run(rows, transaction_signatures=False)[1]) == []


def test_the_sources_own_ledger_list_is_compared(world) -> None:
    rows = world.rows()
    listed = pick(rows, Record.CHANGES)
    listed["raw"] = listed["raw"][34:]
    _, problems = world.run(rows)
    assert causes(problems) == [(FIRST, "utxo_changes")]


def test_a_chrysalis_milestone_needs_its_message(chrysalis) -> None:
    rows = chrysalis.rows()
    own = pick(rows, Record.MILESTONE)["link"]
    rows.remove(pick(rows, Record.BLOCK, lambda row: row["id"] == own))
    _, problems = chrysalis.run(rows)
    assert causes(problems)[0] == (FIRST, "milestone_message_missing")


@pytest.mark.parametrize("size", [1, 10_000])
def test_an_unforeseen_exception_refuses_one_milestone_alone(world, monkeypatch, size) -> None:
    """As a fault of ours in a decoder would: the others are the rows that they were."""
    sound, _ = world.run()
    checked = prove.check_ledger

    def failing(batch, cones, rules):
        if any(cone.milestone.index == FIRST + 5 for cone in cones):
            raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")
        return checked(batch, cones, rules)

    monkeypatch.setattr(prove, "check_ledger", failing)
    rows, problems = world.run(size=size)
    assert [(row["milestone_index"], row["reason"], row["breaks"]) for row in problems] == [
        (FIRST + 5, "undecodable", True)
    ]
    assert "surrogates not allowed" in problems[0]["detail"]

    def key(row):
        return row["milestone_index"], row["kind"], row["white_flag_index"] or 0

    others = [row for row in sound if row["milestone_index"] != FIRST + 5]
    assert sorted(rows, key=key) == sorted(others, key=key)


def test_white_flag_order_is_post_order_in_listed_order() -> None:
    # 3 → (1, 2), 1 → 0, 2 → 0; a chain of 100,000 does not exhaust the stack
    assert white_flag_order([3], [0, 0, 1, 2, 4], [0, 0, 1, 2], bytearray([1] * 4)) == [0, 1, 2, 3]
    assert white_flag_order([3], [0, 0, 1, 2, 4], [0, 0, 2, 1], bytearray([1] * 4)) == [0, 2, 1, 3]
    assert white_flag_order([3], [0, 0, 1, 2, 4], [0, 0, 1, 2], bytearray([0, 1, 1, 1])) == [1, 2, 3]
    length = 100_000
    first = [0, 0, *range(1, length)]
    assert white_flag_order([length - 1], first, list(range(length - 1)), bytearray([1] * length)) == [
        *range(length)
    ]
