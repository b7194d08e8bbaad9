"""Conflict reasons recomputed: without the source's, against them, and with the ledger of earlier days."""

from collections import Counter
from datetime import date
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

from permalake.iota.codec.bech32 import decode_address
from permalake.iota.codec.encode_outputs import Address, Output, pack_output
from permalake.iota.codec.outputs import BASIC, SINGLE
from permalake.iota.codec.reasons import Conflict
from permalake.iota.cone.decoded import ARROW, DECODED, Row, of_kind
from permalake.iota.cone.known_outputs import resolved
from permalake.iota.cone.ledger_history import EarlierOutputs
from permalake.iota.cone.prove import AsRows, decoded
from permalake.iota.cone.rules import ConeRules
from permalake.iota.cone.touched_outputs import TOUCHED, touched_outputs
from permalake.iota.contracts import IOTA_TABLES
from permalake.iota.sources.archive_rest import ArchiveRest
from permalake.iota.tables.decoded_columns import DecodedRange
from support.iota_days import SYNTHETIC, coordinator_keys, copy_archive, expected, lines, rewrite, tangle
from support.iota_verdicts import disagreements, quarantine, refused_days

SPANS = {
    "stardust": (date(2022, 9, 28), date(2022, 9, 30)),
    "chrysalis": (date(2021, 5, 10), date(2021, 5, 12)),
}
FILE = {"stardust": "blocks.jsonl", "chrysalis": "messages.jsonl"}
ID = {"stardust": "blockId", "chrysalis": "messageId"}


class Landed:
    """The decoded rows of an archive, as the cone lands them: ``cone`` without the reasons, ``rows`` with."""

    def __init__(self, spark, protocol, archive, folder):
        source = ArchiveRest(spark, archive)
        self.days = source.days(*SPANS[protocol])
        rules = ConeRules(
            protocol,
            tangle(protocol)["bech32_hrp"],
            tuple(self.days),
            source.first_milestone,
            coordinator_keys(protocol),
            2,
        )
        decoded(partial(source.records, self.days), rules).write.parquet(str(folder))
        self.protocol = protocol
        self.cone = spark.read.parquet(str(folder)).cache()
        blocks = DecodedRange(self.cone.toArrow().cast(ARROW), 1)
        self.pending = ds.dataset(of_kind(self.cone, Row.PENDING).toArrow().cast(ARROW))
        self.touched = ds.dataset(touched_outputs(blocks.included, blocks.receipts))
        self.rows = self.cone.unionByName(spark.createDataFrame(self.resolved(), DECODED)).cache()

    def resolved(self, earlier=None, pending=None, touched=None):
        rows = pending or self.pending, touched or self.touched
        ends = {day.date: day.last for day in self.days}
        batches = resolved(*rows, self.protocol, ends=ends, earlier=earlier, sink=AsRows())
        return pa.Table.from_batches(batches, ARROW)

    def told(self, column):
        blocks = of_kind(self.rows, Row.BLOCK).select("message_id", column).collect()
        return {row["message_id"].hex(): row[column] for row in blocks}


@pytest.fixture(scope="module", params=["stardust", "chrysalis"])
def bare(request, spark, tmp_path_factory):
    """An archive whose metadata tell neither state nor reason."""
    protocol, folder = request.param, tmp_path_factory.mktemp(request.param)
    archive = copy_archive(SYNTHETIC / protocol / "archive", folder / "archive")
    blocks = lines(archive / FILE[protocol])
    named = [one | {"metadata": {ID[protocol]: one["metadata"][ID[protocol]]}} for one in blocks]
    rewrite(archive / FILE[protocol], named)
    return Landed(spark, protocol, archive, folder / "landed")


def wanted(protocol, column):
    return {row["message_id"]: row[column] for row in expected(protocol, "messages")}


def test_states_follow_from_the_ledger_alone(bare) -> None:
    assert refused_days(bare.rows, bare.days) == {}
    assert bare.told("inclusion_state") == wanted(bare.protocol, "inclusion_state")


def test_reasons_are_recomputed_as_far_as_the_archive_tells(bare) -> None:
    reasons = wanted(bare.protocol, "conflict_reason")
    ours = bare.told("conflict_reason")
    assert ours.keys() == reasons.keys()
    assert all(reason in (0, reasons[name]) for name, reason in ours.items())
    # Whose inputs are older than the archive, and nothing consumes them by the end of the day.
    unknown = {"stardust": {3: 5, 4: 1, 9: 1, 10: 1, 11: 1}, "chrysalis": {3: 9, 4: 1, 6: 2}}[bare.protocol]
    assert Counter(reasons[name] for name, reason in ours.items() if reason != reasons[name]) == unknown
    assert of_kind(bare.cone, Row.PENDING).count() == sum(1 for reason in reasons.values() if reason)


def test_reasons_are_the_same_when_several_tasks_find_them(bare) -> None:
    rows = bare.pending.to_table()
    parts = [bare.resolved(pending=ds.dataset(part)) for part in (rows[:7], rows[7:])]
    assert all(part.num_rows for part in parts)
    apart = [row for part in parts for row in part.to_pylist()]
    assert sorted(map(repr, apart)) == sorted(map(repr, bare.resolved().to_pylist()))


@pytest.mark.parametrize("moved", [None, "created", "consumed"])
def test_a_day_alone_has_the_reasons_that_it_has_in_a_range(bare, moved) -> None:
    """Also when nothing but a later day tells of what its transactions would consume."""
    first, *_, last = bare.days
    pending = bare.pending.to_table(filter=pc.field("date") == first.date)
    touched = bare.touched.to_table()
    if moved:
        ids = {
            row["raw"][spent["start"] + 1 :][:34] for row in pending.to_pylist() for spent in row["inputs"]
        }
        others, of_inputs = [], []
        for row in touched.to_pylist():
            (of_inputs if row["output_id"] in ids else others).append(row)
        assert of_inputs
        later = {"is_spent": moved == "consumed", "milestone_index": last.first}
        touched = pa.Table.from_pylist([*others, *(row | later for row in of_inputs)], TOUCHED)
    until = touched.filter(pc.less_equal(touched["milestone_index"], first.last))
    alone = reasons_on(first, bare.resolved(pending=ds.dataset(pending), touched=ds.dataset(until)))
    assert reasons_on(first, bare.resolved(touched=ds.dataset(touched))) == alone
    assert any(alone.values()) == (moved is None)


def reasons_on(day, rows):
    return {
        row["message_id"]: row["conflict_reason"]
        for row in rows.to_pylist()
        if row["kind"] == Row.BLOCK and row["date"] == day.date
    }


def older(protocol):
    """Plain outputs that are unspent at the end of the first day, as far as the expected ledger tells their
    bytes; those of the days themselves too, which changes nothing."""
    plain = {"legacy": SINGLE, "basic": BASIC}
    for row in expected(protocol, "ledger")[0]["unspent"]:
        if row["kind"] in plain:
            _, kind, value = decode_address(row["address"])
            output = Output(plain[row["kind"]], row["amount"], Address(kind, value))
            yield {"output_id": row["output_id"], "data": pack_output(output), "milestone_index": 0}


def test_the_ledger_of_earlier_days_tells_what_the_range_does_not(bare) -> None:
    """Their tables tell in one row what created an output, in another what spent it."""
    reasons = {name: reason for name, reason in wanted(bare.protocol, "conflict_reason").items() if reason}
    unequal = next(name for name, reason in reasons.items() if reason == Conflict.SUM)
    (row,) = of_kind(bare.cone, Row.PENDING).where(f"hex(message_id) = upper('{unequal}')").collect()
    spent = bytes(row["raw"])[row["inputs"][0]["start"] + 1 :][:34]
    gone = {"output_id": spent.hex(), "milestone_index": 1, "transaction_id": "00"}
    earlier = EarlierOutputs(
        (shaped("legacy_outputs", [*older(bare.protocol)]),), shaped("consumed_outputs", [gone])
    )
    rows = bare.resolved(earlier).to_pylist()
    ours = {row["message_id"].hex(): row["conflict_reason"] for row in rows if row["kind"] == Row.BLOCK}
    absent = {name: reason for name, reason in reasons.items() if reason == Conflict.NOT_FOUND}
    assert all(ours[name] in (0, reason) for name, reason in absent.items())
    assert ours | absent == reasons | {unequal: Conflict.SPENT_BEFORE}
    assert not [row for row in rows if row["kind"] == Row.PROBLEM]


def shaped(table, rows):
    return ds.dataset(pa.Table.from_pylist(rows, nullable(IOTA_TABLES[table].arrow)))


def nullable(schema):
    return pa.schema([field.with_nullable(True) for field in schema])


def test_a_reason_that_differs_is_reported_and_breaks_nothing(spark, tmp_path) -> None:
    """The source's own stays, since the node decided on more than the archive tells."""
    archive = copy_archive(SYNTHETIC / "stardust" / "archive", tmp_path / "archive")
    blocks = lines(archive / FILE["stardust"])
    wrong = next(one for one in blocks if one["metadata"].get("conflictReason") == 2)
    wrong["metadata"]["conflictReason"] = 4
    rewrite(archive / FILE["stardust"], blocks)
    landed = Landed(spark, "stardust", archive, tmp_path / "landed")
    name = wrong["metadata"]["blockId"].removeprefix("0x")
    assert refused_days(landed.rows, landed.days) == {}
    assert landed.told("conflict_reason")[name] == 4
    (found,) = quarantine(landed.rows, "archive_rest")
    assert disagreements(landed.rows) == {found["date"]: 1}
    assert found["reason"] == "conflict_disagreement"
    said = "conflicts: 4 (inputs and outputs differ in amount) by its source, 2"
    assert f"message {name} {said}" in found["detail"]
    assert found["origin"].startswith("blocks.jsonl milestone ")
