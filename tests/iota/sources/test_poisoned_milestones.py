"""One bad milestone refuses its own day, with its number and a reason, and no other day."""

import gzip
import json
import shutil
from datetime import date, timedelta

import pytest

from permalake import paths
from permalake.config.networks import NetworkSettings
from permalake.iota.sources.archive_rest import ArchiveRest
from permalake.iota.sources.iota_source import day_notes
from permalake.iota.sources.source_ends import continued_files
from support import pure_archive
from support.iota_days import SYNTHETIC, differences, expected
from support.source_builds import build_from, settings

DAYS = {
    "stardust": (date(2022, 9, 28), date(2022, 9, 30)),
    "chrysalis": (date(2021, 5, 10), date(2021, 5, 12)),
}
FIRST, LAST_OF_DAY, LAST = 249_992, 249_999, 250_007


def spoil(root, index, change) -> None:
    """Change the line of milestone ``index``."""
    file = next(file for kind, file in pure_archive.files(root) if kind == 0)
    lines = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    for line in lines:
        if line["index"] == index:
            change(line)
    file.write_bytes(gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))


def payload(at, value, width):
    def change(line):
        raw = bytearray.fromhex(line["rawPayload"].removeprefix("0x"))
        raw[at : at + width] = value.to_bytes(width, "little")
        line["rawPayload"] = raw.hex()

    return change


def both_indexes(value):
    def change(line):
        line["index"] = value
        payload(4, value, 4)(line)

    return change


POISONS = {
    "u64 time": ("chrysalis", lambda i: payload(8, 2**64 - 1, 8)),
    "time in milliseconds": ("chrysalis", lambda i: payload(8, 1_620_669_600_000, 8)),
    "time long ago": ("chrysalis", lambda i: payload(8, 1_000, 8)),
    "u32 time": ("stardust", lambda i: payload(8, 2**32 - 1, 4)),
    "time of another day": ("stardust", lambda i: payload(8, 1_664_388_000 - 5 * 86_400, 4)),
    "bit 30 of the index": ("stardust", lambda i: both_indexes(i ^ 1 << 30)),
    "bit 30 of the payload's index": ("stardust", lambda i: payload(4, i ^ 1 << 30, 4)),
    "index of 2^31": ("chrysalis", lambda i: both_indexes(2**31 + i)),
    "index of the other day": ("stardust", lambda i: both_indexes(LAST if i < LAST_OF_DAY + 1 else FIRST)),
    "index below the source's first": ("chrysalis", lambda i: both_indexes(i ^ 1 << 17)),
    "no payload": ("stardust", lambda i: lambda line: line.update(rawPayload="0x07")),
}


@pytest.mark.parametrize("index", [FIRST, FIRST + 3, LAST_OF_DAY, LAST_OF_DAY + 1, LAST])
@pytest.mark.parametrize("poison", POISONS)
def test_a_bad_milestone_refuses_its_own_day_alone(poison, index, tmp_path) -> None:
    protocol, change = POISONS[poison]
    root = shutil.copytree(SYNTHETIC / protocol / "archive", tmp_path / "archive")
    spoil(root, index, change(index))
    found, first = pure_archive.days(root)
    assert all(day.last - day.first < 100_000 for day in found)
    _, problems = pure_archive.prove(pure_archive.records(root), protocol, found, first)
    own = DAYS[protocol][index > LAST_OF_DAY]
    refused = pure_archive.refused(problems, found)
    assert own in refused
    if index not in {FIRST, LAST_OF_DAY, LAST_OF_DAY + 1, LAST}:
        assert refused == {own}
    told = [day.fault for day in found if day.fault] + [row["detail"] for row in problems if row["breaks"]]
    assert told
    assert all("\n" not in line for line in told)


def test_a_range_with_a_poisoned_day_publishes_the_other(spark, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(paths, "HOME", tmp_path / "home")
    root = shutil.copytree(SYNTHETIC / "chrysalis" / "archive", tmp_path / "archive")
    spoil(root, FIRST + 3, payload(8, 2**64 - 1, 8))
    spoil(root, FIRST + 1, both_indexes((FIRST + 1) ^ 1 << 30))
    poisoned, sound = DAYS["chrysalis"]
    network = settings("chrysalis", source="archive_rest", path=root)
    span = (poisoned.isoformat(), sound.isoformat())
    built = build_from(spark, ArchiveRest(spark, root), network, span, tmp_path / "decoded")
    assert list(built.refused) == [poisoned], built.refused
    assert f"milestone {FIRST + 3}: milestone_time" in built.refused[poisoned]
    for name in ("milestones", "messages", "legacy_outputs"):
        ours = [row for row in built.rows(name) if row["milestone_index"] > LAST_OF_DAY]
        theirs = [row for row in expected("chrysalis", name) if row["milestone_index"] > LAST_OF_DAY]
        assert theirs
        assert differences(ours, theirs) == ([], []), name


def test_a_source_that_ends_inside_a_day_says_so_and_the_day_is_stale_when_it_goes_on(
    spark, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(paths, "HOME", tmp_path / "home")
    root = shutil.copytree(SYNTHETIC / "stardust" / "archive", tmp_path / "archive")
    file = next(file for kind, file in pure_archive.files(root) if kind == 0)
    whole = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
    short = [line for line in whole if json.loads(line)["index"] < LAST_OF_DAY]
    file.write_bytes(gzip.compress(b"".join(short)))
    day, later = DAYS["stardust"]
    earlier = day - timedelta(days=1)
    source = ArchiveRest(spark, root)
    notes = dict(day_notes(source, source.days(day, day), day, day))
    assert notes == {day: f"the source ends with milestone {LAST_OF_DAY - 1}; the day may go on"}
    assert dict(day_notes(source, [], later, later)) == {later: notes[day]}
    assert dict(day_notes(source, [], earlier, earlier)) == {}
    before = {day: ["coordinator keys are unchecked", notes[day]]}
    archive = NetworkSettings(protocol="stardust", bech32_hrp="smr", path=root)
    assert continued_files(archive, before) == {}
    monkeypatch.setattr(paths, "HOME", tmp_path / "another")  # as a machine that has never read the archive
    assert continued_files(archive, before) == {}
    monkeypatch.setattr(paths, "HOME", tmp_path / "home")
    file.write_bytes(gzip.compress(b"".join(whole)))
    stale = {day: f"the source goes on after milestone {LAST_OF_DAY - 1}"}
    assert continued_files(archive, before) == stale
    source = ArchiveRest(spark, root)
    assert dict(day_notes(source, source.days(day, day), day, day)) == {}
    assert continued_files(archive, before) == stale
