"""The two jobs of an IOTA day on the real Shimmer sample and synthetic days, staged in a real lake."""

import json
import random
import re
from datetime import date

import pytest

from permalake.errors import PermalakeError
from permalake.iota.codec.reasons import Conflict
from permalake.paths import SAMPLE
from support.iota_days import DATA, SYNTHETIC, copy_archive, differences, expected, lines, rewrite
from support.iota_network import Network
from support.lakes import pass_audit

MEASURED = json.loads((DATA / "iota" / "expected_measurements.json").read_text())
DAY = date(2022, 9, 28)


@pytest.fixture(scope="module")
def sample(spark, tmp_path_factory):
    """The sample, its lines shuffled and some repeated, with a line that is no record."""
    folder = tmp_path_factory.mktemp("sample")
    archive = copy_archive(SAMPLE / "shimmer", folder / "archive")
    for name in ("blocks", "consumed_outputs", "milestones"):
        rows = lines(archive / f"{name}.jsonl")
        rewrite(
            archive / f"{name}.jsonl", random.Random(3).sample([*rows, *rows[:9]], len([*rows, *rows[:9]]))
        )
    with (archive / "blocks.jsonl").open("a") as file:
        file.write('{"milestone": 17340, "raw": "02\n')
    with pytest.MonkeyPatch.context() as monkeypatch:
        network = Network(spark, folder, archive, monkeypatch)
        network.run("iota_ingest")
        network.run("iota_analytics")
        yield network


def test_sample_milestones_of_the_permanode(sample) -> None:
    rows = sorted(sample.rows("ms_analytics"), key=lambda row: row["milestone_index"])
    figures = ("milestone_index", "message_count", "transaction_count", "transferred_tokens")
    assert [tuple(row[name] for name in figures) for row in rows] == [
        (17339, 38, 5, 96847628508),
        (17340, 43, 7, 891030800),
    ]


def measured(row):
    """A row of ms_activity under the names of the measurements, where they follow from the day alone."""
    names = [*(f"single({n})" for n in range(1, 8)), "small", "medium", "large", "huge"]
    chains = {
        "nft": ("created", "transferred", "destroyed"),
        "foundry": ("created", "transferred", "destroyed"),
    }
    chains["alias"] = ("created", "governor_changed", "state_changed", "destroyed")
    return {
        "active_addresses.count": row["active_addresses"],
        "base_tokens.transferred_amount.0": row["moved_tokens"],
        "block_activity.milestone_count": row["milestone_payload_count"],
        "block_activity.no_payload_count": row["no_payload_count"],
        "block_activity.tagged_data_count": row["tagged_data_count"],
        "block_activity.transaction_count": row["transaction_payload_count"],
        "block_activity.treasury_transaction_count": row["treasury_transaction_count"],
        "block_activity.confirmed_count": row["confirmed_count"],
        "block_activity.conflicting_count": row["conflicting_count"],
        "block_activity.no_transaction_count": row["no_transaction_count"],
        "milestone_size.total_milestone_payload_bytes": row["milestone_bytes"],
        "milestone_size.total_tagged_data_payload_bytes": row["tagged_data_bytes"],
        "milestone_size.total_transaction_payload_bytes": row["transaction_bytes"],
        "milestone_size.total_treasury_transaction_payload_bytes": row["treasury_transaction_bytes"],
        "milestone_size.total_milestone_bytes": row["message_bytes"],
        **{
            f"transaction_size.{side}_buckets.{name}": count
            for side in ("input", "output")
            for name, count in zip(names, row[f"{side}_buckets"], strict=True)
        },
        **{
            f"output_activity.{kind}.{what}_count": row[f"{kind}_{what}_count"]
            for kind, changes in chains.items()
            for what in changes
        },
    }


STATEFUL = ("address_balance", "ledger_outputs", "ledger_size", "unclaimed_tokens", "unlock_conditions")


def test_sample_measurements_of_the_indexer(sample) -> None:
    booked = {row["milestone_index"]: row["transferred_tokens"] for row in sample.rows("ms_analytics")}
    rows = sample.rows("ms_activity")
    assert len(rows) == 2
    for row in rows:
        index = row["milestone_index"]
        theirs = MEASURED[str(index)]
        ours = measured(row) | {"base_tokens.booked_amount.0": booked[index]}
        assert ours == {name: value for name, value in theirs.items() if not name.startswith(STATEFUL)}


def test_sample_ledger_changes_fit_the_indexers_totals(sample) -> None:
    """Totals before 17339 are not known; what 17340 changed is the difference of the two."""
    consumed = sample.rows("consumed_outputs")
    for kind in ("basic", "alias", "nft", "foundry"):
        created = [row for row in sample.rows(f"{kind}_outputs") if row["milestone_index"] == 17340]
        spent = [row for row in consumed if row["milestone_index"] == 17340 and row["kind"] == kind]
        for what, change in (
            ("count", len(created) - len(spent)),
            ("amount.0", sum(row["amount"] for row in created) - sum(row["amount"] for row in spent)),
        ):
            before, after = (MEASURED[index][f"ledger_outputs.{kind}.{what}"] for index in ("17339", "17340"))
            assert change == after - before


def test_sample_line_that_is_no_record_is_quarantined_alone(sample) -> None:
    assert sample.quarantined() == [("malformed", "blocks.jsonl milestone 17340")]
    assert sample.attempt().record.refused == {}


def test_sample_milestone_is_carried_by_a_block_of_the_next_cone(sample) -> None:
    carrier = {row["milestone_index"]: row["message_id"] for row in sample.rows("milestones")}
    placed = {row["message_id"]: row["milestone_index"] for row in sample.rows("messages")}
    assert placed[carrier[17339]] == 17340
    assert carrier[17340] is None


def test_sample_is_published_with_a_note_on_its_keys(sample) -> None:
    assert sample.lake.builds.publish(pass_audit(sample.attempt())).rows["messages"] == 81
    [status] = sample.lake.reader.status("shimmer")
    assert list(status.notes) == [
        "coordinator keys are unchecked",
        "the source ends with milestone 17340; the day may go on",
    ]


_PLACES = {"base_tokens": "base_token_activity", "transaction_size": "transaction_size_distribution"}


def recorded_as(name):
    """(measurement, field) of a figure recorded in inx-chronicle's tests, as it writes them to InfluxDB."""
    part, field = name.split(".", 1)
    field = re.sub(r"_buckets\.(?:single\((\d)\)|(\w+))", r"_\1\2", field).removesuffix(".0")
    return f"stardust_{_PLACES.get(part, part)}", field.replace(".", "_")


def test_sample_measurements_have_the_indexers_names(sample) -> None:
    """After the publication: views show published days."""
    theirs = {
        (int(index), *recorded_as(name)): value
        for index, figures in MEASURED.items()
        for name, value in figures.items()
        if not name.startswith(STATEFUL)
    }
    names = ("milestone_index", "measurement", "field")
    rows = sample.lake.query("from shimmer.chronicle_measurements").to_pylist()
    assert {tuple(row[name] for name in names): row["value"] for row in rows} == theirs
    assert len(rows) == len(theirs) == 2 * 48


def test_one_broken_day_of_a_range_stays_back(spark, tmp_path, monkeypatch) -> None:
    archive = copy_archive(SYNTHETIC / "stardust" / "archive", tmp_path / "archive")
    blocks = lines(archive / "blocks.jsonl")
    spoilt = next(block for block in blocks if block["milestone"] == 249_995)
    spoilt["raw"] = spoilt["raw"][:80] + ("0" if spoilt["raw"][80] != "0" else "1") + spoilt["raw"][81:]
    later = {row["message_id"] for row in expected("stardust", "messages") if row["date"] == "2022-09-30"}
    doubted = next(
        metadata
        for metadata in (block["metadata"] for block in blocks)
        if metadata.get("conflictReason") == Conflict.SPENT_IN_MILESTONE
        and metadata["blockId"].removeprefix("0x") in later
    )
    doubted["conflictReason"] = int(Conflict.SUM)
    rewrite(archive / "blocks.jsonl", blocks)
    network = Network(spark, tmp_path, archive, monkeypatch)
    network.run("iota_ingest", "2022-09-28", "2022-09-30")
    refused = network.attempt().record.refused
    assert list(refused) == [DAY]
    assert refused[DAY].startswith("milestone 249995: id_mismatch: block ")
    assert "id_mismatch" in [reason for reason, _ in network.quarantined()]
    theirs = [row for row in expected("stardust", "messages") if row["date"] == "2022-09-30"]
    told = next(row for row in theirs if row["message_id"] == doubted["blockId"].removeprefix("0x"))
    told["conflict_reason"] = Conflict.SUM
    ours = [row for row in network.rows("messages") if row["date"] == "2022-09-30"]
    assert differences(ours, theirs) == ([], [])
    done = network.lake.builds.publish(pass_audit(network.attempt()))
    assert list(done.withheld) == [DAY]
    notes = {day.date: list(day.notes) for day in network.lake.reader.status("shimmer")}
    assert "conflicts unlike the source's: 1 (quarantine: conflict_disagreement)" in notes[date(2022, 9, 30)]
    with pytest.raises(PermalakeError, match="2022-09-28: milestone 249995: id_mismatch"):
        network.run("iota_ingest", run_id="another")


def test_days_that_were_built_before_their_archive_went_on_become_stale(spark, tmp_path, monkeypatch) -> None:
    archive = copy_archive(SYNTHETIC / "stardust" / "archive", tmp_path / "archive")
    whole = lines(archive / "milestones.jsonl")
    rewrite(archive / "milestones.jsonl", [row for row in whole if row["index"] < 250_000])
    network = Network(spark, tmp_path, archive, monkeypatch)
    last = date(2022, 9, 30)
    network.run("iota_ingest", "2022-09-28", "2022-09-30")
    network.lake.builds.publish(pass_audit(network.attempt()))
    status = network.lake.reader.status("shimmer")
    note = "the source ends with milestone 249999; the day may go on"
    assert [day.date for day in status if note in day.notes] == [DAY, date(2022, 9, 29), last]
    assert [day.date for day in status if day.rows] == [DAY]
    rewrite(archive / "milestones.jsonl", whole)
    network.run("iota_ingest", "2022-10-01", run_id="next")
    assert network.lake.reader.stale("shimmer") == [(DAY, last)]


def test_a_day_without_milestones_has_no_rows(spark, tmp_path, monkeypatch) -> None:
    network = Network(spark, tmp_path, SYNTHETIC / "stardust" / "archive", monkeypatch)
    network.run("iota_ingest", "2022-09-29")
    network.run("iota_analytics", "2022-09-29")
    assert set(map(len, (network.rows(name) for name in ("messages", "ms_analytics", "date_cache")))) == {0}
    assert network.attempt().record.refused == {}
