"""The archive_rest source: which directories a day reads, days and gaps, lines that are no records."""

import gzip
import json
import random
from datetime import date

import pytest

from permalake import paths
from permalake.errors import PermalakeError
from permalake.iota.cone.source_records import Record
from permalake.iota.sources import archive_index
from permalake.iota.sources.archive_rest import ArchiveRest

DAY = 86_400
FIRST_DAY = date(2023, 1, 1)
BEGIN = 1_672_531_200


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(paths, "HOME", tmp_path / "home")


def milestone(index, timestamp):
    head = b"\x07\0\0\0" + index.to_bytes(4, "little") + timestamp.to_bytes(4, "little")
    return {
        "index": index,
        "rawPayload": "0x" + head.hex() + "00",
        "milestoneId": "0x" + "ab" * 32,
        "coneSize": 1,
    }


def block(index, number=0):
    metadata = {"blockId": "0x" + "cd" * 32, "ledgerInclusionState": "included", "whiteFlagIndex": number}
    return {"milestone": index, "raw": f"02{index:08x}", "metadata": metadata}


def write(folder, name, rows, extra="") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows) + extra)


def day_folder(root, number, per_day=20) -> None:
    """Day ``number`` with milestones 1 + number * per_day and so on, one block each."""
    indexes = range(1 + number * per_day, 1 + (number + 1) * per_day)
    times = [BEGIN + number * DAY + 60 * i for i in range(per_day)]
    write(root / f"day{number}", "milestones.jsonl", map(milestone, indexes, times))
    write(root / f"day{number}", "blocks.jsonl", map(block, indexes))


def test_a_day_reads_its_folder_and_the_milestones_before(spark, tmp_path) -> None:
    root = tmp_path / "in: [a]{b}*?%41 #\n" / "\udcff"  # names are names, whatever bytes they are
    for number in range(4):
        day_folder(root, number)
    source = ArchiveRest(spark, root, look_back=20)
    assert source.first_milestone == 1
    (root / "day0" / "blocks.jsonl").unlink()  # not looked at
    days = source.days(date(2023, 1, 3), date(2023, 1, 3))
    assert [(day.date, day.first, day.last, day.gaps) for day in days] == [(date(2023, 1, 3), 41, 60, ())]
    records = source.records(days)
    rows = records.where(records.kind == int(Record.BLOCK)).collect()
    assert sorted(row["milestone"] for row in rows) == list(range(21, 61))
    assert {row["origin"] for row in rows} == {"day1/blocks.jsonl", "day2/blocks.jsonl"}
    assert {(bytes(row["id"]), row["state"], row["number"]) for row in rows} == {(b"\xcd" * 32, 1, 0)}


def test_what_a_file_spans_is_looked_at_once(spark, tmp_path, monkeypatch) -> None:
    day_folder(tmp_path / "in", 0)
    day_folder(tmp_path / "in", 1)
    ArchiveRest(spark, tmp_path / "in")
    measured = []
    measure = archive_index._measure
    monkeypatch.setattr(
        archive_index, "_measure", lambda s, files, *rest: measured.extend(files) or measure(s, files, *rest)
    )
    assert ArchiveRest(spark, tmp_path / "in").first_milestone == 1
    assert measured == []
    day_folder(tmp_path / "in", 2)
    day_folder(tmp_path / "in", 0, per_day=10)
    source = ArchiveRest(spark, tmp_path / "in")
    assert sorted(file.parent.name for file in measured) == ["day0", "day2"]
    assert source.days(date(2023, 1, 3), date(2023, 1, 3))[0].last == 60


def test_days_and_gaps_follow_the_payloads_time(spark, tmp_path) -> None:
    rows = [milestone(i, BEGIN + DAY - 3 + i) for i in range(10) if i not in (1, 5, 6)]
    write(tmp_path / "in", "milestones-a.jsonl", [row | {"timestamp": 0} for row in rows])
    source = ArchiveRest(spark, tmp_path / "in")
    days = source.days(FIRST_DAY, date(2023, 1, 9))
    assert [(day.first, day.last, day.gaps) for day in days] == [(0, 2, ((1, 1),)), (3, 9, ((5, 6),))]
    assert source.days(date(2024, 1, 1), date(2024, 1, 1)) == []


@pytest.mark.parametrize("left", ["", "no json\n"])
def test_a_day_without_its_last_milestone_has_a_gap_where_the_next_day_shows_it(
    spark, tmp_path, left
) -> None:
    root = tmp_path / "in"
    day_folder(root, 0)
    file = root / "day0" / "milestones.jsonl"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]) + left)
    (alone,) = ArchiveRest(spark, root).days(FIRST_DAY, FIRST_DAY)
    assert (alone.last, alone.gaps) == (19, ())
    day_folder(root, 1)
    (day,) = ArchiveRest(spark, root).days(FIRST_DAY, FIRST_DAY)
    assert (day.date, day.last, day.gaps) == (FIRST_DAY, 19, ((20, 20),))


def test_lines_without_the_right_shape_are_kept_as_they_are(spark, tmp_path) -> None:
    day_folder(tmp_path / "in", 0)
    odd = [
        "no json",
        '{"milestone": 7, "raw": "02',
        '{"milestone": 8, "raw": "zz"}',
        '{"milestone": "nine", "raw": "02"}',
        '{"milestone": 999, "raw": "zz"}',
    ]
    with (tmp_path / "in" / "day0" / "blocks.jsonl").open("a") as file:
        file.write("".join(line + "\n" for line in odd))
    source = ArchiveRest(spark, tmp_path / "in")
    records = source.records(source.days(FIRST_DAY, FIRST_DAY))
    rows = records.where(records.kind == int(Record.MALFORMED)).collect()
    found = {bytes(row["raw"]).decode(): row["milestone"] for row in rows}
    assert found == {odd[0]: 1, odd[1]: 7, odd[2]: 8, odd[3]: 1, odd[4]: 1}
    assert records.where(records.kind == int(Record.BLOCK)).count() == 20


def test_what_is_quarantined_is_the_exact_input(spark, tmp_path) -> None:
    day_folder(tmp_path / "in", 0)
    odd = [
        b'{"milestone": 3, "raw": "\xff\xfe"}',
        b'{"milestone":  8 , "raw": "zz"}',
        b"\x80\x00",
        b"[" * 3_000,
    ]
    odd += [b'{"milestone": 4, "raw": "02", "metadata": {"whiteFlagIndex": 1e1000000}}']
    with (tmp_path / "in" / "day0" / "blocks.jsonl").open("ab") as file:
        file.write(b"".join(line + b"\n" for line in odd))
    source = ArchiveRest(spark, tmp_path / "in")
    records = source.records(source.days(FIRST_DAY, FIRST_DAY))
    rows = records.where(records.kind == int(Record.MALFORMED)).collect()
    assert sorted(bytes(row["raw"]) for row in rows) == sorted(odd)
    assert all(row["link"] for row in rows)


def test_a_milestones_file_that_breaks_off_keeps_its_days_unpublished(spark, tmp_path) -> None:
    day_folder(tmp_path / "in", 0)
    day_folder(tmp_path / "in", 1)
    plain = tmp_path / "in" / "day1" / "milestones.jsonl"
    packed = gzip.compress(plain.read_bytes() + b" " * 5_000 + random.Random(1).randbytes(50_000))
    plain.unlink()
    plain.with_suffix(".jsonl.gz").write_bytes(packed[:-20_000])
    days = ArchiveRest(spark, tmp_path / "in").days(date(2023, 1, 2), date(2023, 1, 2))
    assert len(days) == 1
    assert "milestones.jsonl.gz: the gzip file is damaged" in days[0].fault
    plain.with_suffix(".jsonl.gz").write_bytes(packed[:15])
    with pytest.raises(PermalakeError, match=r"milestones\.jsonl\.gz: .*gzip file is damaged"):
        ArchiveRest(spark, tmp_path / "in")


def test_days_that_a_damaged_file_may_hold_are_not_taken_for_empty(spark, tmp_path) -> None:
    root = tmp_path / "in"
    for number in (0, 1, 2, 5):
        day_folder(root, number)
    first, second, lost = (root / f"day{number}" / "milestones.jsonl" for number in range(3))
    noise = random.Random(1).randbytes(50_000)
    packed = gzip.compress(first.read_bytes() + second.read_bytes() + noise + b"\n" + lost.read_bytes())
    for file in (first, second, lost):
        file.unlink()
    first.with_suffix(".jsonl.gz").write_bytes(packed[:-20_000])
    source = ArchiveRest(spark, root)
    days = source.days(FIRST_DAY, date(2023, 1, 9))
    found = {day.date.day: (day.has_milestones, bool(day.fault)) for day in days}
    emptied = dict.fromkeys((3, 4, 5), (False, True))
    assert found == {1: (True, True), 2: (True, True), **emptied, 6: (True, False)}
    (alone,) = source.days(date(2023, 1, 3), date(2023, 1, 3))
    assert alone.fault.startswith("milestone 41: malformed: milestones.jsonl.gz: the gzip file is damaged")


def test_a_path_without_an_archive_is_an_error_that_names_the_key(spark, tmp_path) -> None:
    with pytest.raises(PermalakeError, match=r"set networks\.NAME\.path"):
        ArchiveRest(spark, tmp_path)
