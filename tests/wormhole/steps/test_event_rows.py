"""Whatever one message does to our code, the others are published and it is quarantined with a reason."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from permalake.errors import PermalakeError
from permalake.lake.task_files import FileTarget
from permalake.wormhole.contracts import WORMHOLE_TABLES
from permalake.wormhole.reference import load_reference
from permalake.wormhole.steps import event_writer
from permalake.wormhole.steps.event_writer import COUNTS, REFUSED_VAAS, EventWriter, event_rows
from permalake.wormhole.tables.copies import VAA_SCHEMA
from permalake.wormhole.tables.event_tables import EVENT_TABLES
from support.guardians import BRIDGE, GUARDIAN_SETS, vaa
from support.lakes import DAY1

SCHEMA = VAA_SCHEMA.append(pa.field("in_range", pa.bool_()))
SEQUENCES = range(1, 8)


@pytest.fixture
def reference(tmp_path):
    (tmp_path / "guardian_sets.json").write_text(json.dumps(GUARDIAN_SETS))
    bridge = {"chain": 2, "emitter": BRIDGE.hex()}
    (tmp_path / "bridges.json").write_text(json.dumps({"tokenbridge_emitters": [bridge]}))
    return load_reference(tmp_path)


@pytest.fixture
def candidates():
    rows = [
        {
            "message": f"2:{BRIDGE.hex()}:{sequence:016d}",
            "identity": f"2/{BRIDGE.hex()}/{sequence}",
            "raw": vaa(sequence, DAY1),
            "source": "files",
            "origin": f"vaas.jsonl#{sequence}",
            "date": DAY1,
            "in_range": True,
        }
        for sequence in SEQUENCES
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


TARGETS = {
    name: FileTarget(name, "nowhere", table.iceberg.model_dump_json(), {}, 0, table.order)
    for name, table in EVENT_TABLES.items()
}


def outcome(candidates, reference):
    """(sequences published, quarantine rows, VAAs counted and verified)."""
    published, refused, counted = [], [], [0, 0]
    for rows in event_rows(candidates, reference, TARGETS):
        if "message_publication" in rows.tables:
            published += map(int, rows.tables["message_publication"]["sequence"].to_pylist())
        refused += rows.landed[REFUSED_VAAS].to_pylist()
        for count in rows.landed[COUNTS].to_pylist():
            counted = [counted[0] + count["messages"], counted[1] + count["verified"]]
    return published, refused, counted


def test_sound_messages_make_one_lot(candidates, reference) -> None:
    assert outcome(candidates, reference) == (list(SEQUENCES), [], [7, 7])


@pytest.mark.parametrize("bad", [1, 4, 7])
def test_a_message_that_code_stumbles_on_is_quarantined_alone(
    candidates, reference, monkeypatch, bad
) -> None:
    judge, raw = event_writer.verified, vaa(bad, DAY1)

    def stumbling(rows, given):
        if raw in rows["raw"].to_pylist():
            raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")
        return judge(rows, given)

    monkeypatch.setattr(event_writer, "verified", stumbling)
    published, refused, counted = outcome(candidates, reference)
    assert published == [sequence for sequence in SEQUENCES if sequence != bad]
    assert counted == [7, 6]
    [row] = refused
    assert (row["reason"], row["raw"], row["origin"]) == ("undecodable", raw, f"vaas.jsonl#{bad}")
    assert "surrogates not allowed" in row["detail"]


def test_a_value_that_its_column_cannot_hold_is_quarantined_alone(candidates, reference, monkeypatch) -> None:
    made = event_writer.event_tables

    def without_digest(found):
        for name, rows in made(found):
            if name == "message_publication":
                digest = pa.array(
                    [None if sequence == 3 else "00" for sequence in rows["sequence"].to_pylist()]
                )
                rows = rows.set_column(rows.schema.get_field_index("digest"), "digest", digest)  # noqa: PLW2901
            yield name, rows

    monkeypatch.setattr(event_writer, "event_tables", without_digest)
    published, refused, _ = outcome(candidates, reference)
    assert published == [1, 2, 4, 5, 6, 7]
    assert [row["detail"] for row in refused] == [
        "ArrowInvalid: message_publication: a value of digest is missing"
    ]


def test_a_full_disk_is_nobodys_fault(candidates, reference, monkeypatch) -> None:
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(event_writer, "verified", full)
    with pytest.raises(OSError, match="No space left"):
        outcome(candidates, reference)


def test_a_fault_of_ours_publishes_no_day_without_its_messages(candidates, tmp_path, monkeypatch) -> None:
    def stumbling(*_):
        raise KeyError("renamed")

    columns = {name: candidates[name] for name in (*VAA_SCHEMA.names[:2], *VAA_SCHEMA.names[3:9])}
    never = pa.nulls(len(candidates), pa.timestamp("us", tz="UTC"))
    documents = pa.table(
        columns | {"body_date": candidates["date"], "document_time": never, "indexed_at": never}
    )
    monkeypatch.setattr(event_writer, "verified", stumbling)
    writer = EventWriter(tuple(TARGETS.values()), str(tmp_path), DAY1, DAY1, None, {})
    assert len(list(writer(documents.to_batches()))) == 1
    monkeypatch.setattr(event_writer, "_FEW_UNDECODABLE", 6)
    with pytest.raises(PermalakeError, match="7 VAAs are undecodable, which is no fault of theirs"):
        list(writer(documents.to_batches()))


def test_tables_are_those_of_the_contract() -> None:
    assert set(TARGETS) <= set(WORMHOLE_TABLES)
