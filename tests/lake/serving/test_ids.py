"""The id index: places of a value, from segments that are merged and survive a restart."""

from __future__ import annotations

import os
from datetime import date, timedelta
from pathlib import Path

import duckdb
import numpy as np
import pytest

from permalake.domains import domain_of
from permalake.lake.serving import LakeReader
from permalake.lake.serving.ids import IdIndex, hashed
from support import lakes

DAY = date(2022, 9, 28)


def pairs(values, places):
    return np.array([hashed(one) for one in values], np.uint64), np.array(places, np.int32)


def add(index, number, values, places) -> None:
    index.add({DAY + timedelta(number): f"files {number}"}, pairs(values, places))


def test_the_hash_is_duckdbs() -> None:
    value = "smr1qpt"
    found = duckdb.connect().execute("select md5_number_lower($1)", [value]).fetchone()
    assert found == (hashed(value),)


def test_a_value_is_found_wherever_it_was_added(tmp_path) -> None:
    index = IdIndex(tmp_path)
    add(index, 0, ["a", "b", "a"], [1, 1, 2])
    add(index, 1, ["a", "c"], [7, 7])
    assert index.find("a") == [1, 2, 7]
    assert index.find("c") == [7]
    assert index.find("absent") == []


def test_many_days_make_few_segments_and_lose_nothing(tmp_path) -> None:
    index = IdIndex(tmp_path)
    for number in range(300):
        add(index, number, [f"{number}-{at}" for at in range(number % 7)], [number] * (number % 7))
    assert len(list(tmp_path.glob("*.keys.npy"))) <= 20
    reopened = IdIndex(tmp_path)
    for number in range(300):
        for at in range(number % 7):
            assert reopened.find(f"{number}-{at}") == [number]


def empty(file) -> None:
    file.write_bytes(b"")


def truncate(file) -> None:
    with file.open("r+b") as opened:
        opened.truncate(file.stat().st_size // 2)


def shorten(file) -> None:
    """Lose the last value, as a whole file of another length."""
    np.save(file, np.load(file)[:-1])


def no_json(file) -> None:
    file.write_text('["segments"]')


@pytest.mark.parametrize(
    ("pattern", "damage"),
    [
        ("index.json", empty),
        ("index.json", truncate),
        ("index.json", no_json),
        ("*.keys.npy", empty),
        ("*.keys.npy", truncate),
        ("*.places.npy", truncate),
        ("*.places.npy", shorten),
        ("*.places.npy", Path.unlink),
    ],
)
def test_a_damaged_file_is_named_and_the_index_built_again(tmp_path, caplog, pattern, damage) -> None:
    index = IdIndex(tmp_path)
    add(index, 0, ["a", "b"], [1, 2])
    (file,) = tmp_path.glob(pattern)
    damage(file)
    again = IdIndex(tmp_path)
    assert str(file) in caplog.text
    assert again.missing({DAY: "files 0"}) == [DAY]
    add(again, 0, ["a", "b"], [1, 2])
    assert IdIndex(tmp_path).find("b") == [2]
    assert not IdIndex(tmp_path).missing({DAY: "files 0"})


def test_damage_beside_a_running_server_loses_nothing(tmp_path) -> None:
    index = IdIndex(tmp_path)
    add(index, 0, ["a"], [1])
    empty(tmp_path / "index.json")
    add(index, 1, ["b"], [2])
    assert [IdIndex(tmp_path).find(value) for value in "ab"] == [[1], [2]]


def test_files_are_on_disk_before_the_manifest_names_them(tmp_path, monkeypatch) -> None:
    calls = []
    sync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda file: calls.append("sync") or sync(file))
    monkeypatch.setattr(Path, "replace", lambda *paths: calls.append("replace") or replace(*paths))
    add(IdIndex(tmp_path), 0, ["a"], [1])
    assert calls == ["sync", "sync", "sync", "replace"]


def test_a_home_that_cannot_be_written_is_named_and_serves_all_the_same(tmp_path, caplog) -> None:
    settings = lakes.settings_of(tmp_path / "lake")
    lakes.build(settings, lakes.OpenLake(settings), lakes.DAY1, 1, 3, "first")
    home = tmp_path / "home"
    home.write_text("not a folder")
    reader = LakeReader(settings, domain_of, cache=home)
    assert reader.snapshot().publication
    assert f"the index of ids cannot be written: {home}" in caplog.text
    reader.close()


def test_a_day_counts_as_indexed_until_its_files_change(tmp_path) -> None:
    index = IdIndex(tmp_path)
    add(index, 0, ["a"], [1])
    later = DAY + timedelta(1)
    assert IdIndex(tmp_path).missing({DAY: "files 0", later: "other"}) == [later]
    assert index.missing({DAY: "rewritten"}) == [DAY]


def test_two_servers_share_a_folder(tmp_path) -> None:
    one, other = IdIndex(tmp_path), IdIndex(tmp_path)
    for number in range(20):
        add(one if number % 2 else other, number, [f"{number}"], [number])
    both = IdIndex(tmp_path)
    assert [both.find(f"{number}") for number in range(20)] == [[number] for number in range(20)]


def test_an_index_of_another_format_is_built_again(tmp_path) -> None:
    add(IdIndex(tmp_path), 0, ["a"], [1])
    manifest = tmp_path / "index.json"
    manifest.write_text(manifest.read_text().replace('"format": 1', '"format": 0'))
    assert IdIndex(tmp_path).missing({DAY: "files 0"}) == [DAY]


@pytest.fixture
def lake(tmp_path):
    settings = lakes.settings_of(tmp_path / "warehouse")
    lakes.build(settings, lakes.OpenLake(settings), lakes.DAY1, 1, 3, "first")
    return settings


def message(milestone, at) -> str:
    return f"{milestone:060x}{at:04x}"


def test_the_reader_finds_messages_of_days_published_before_and_after_it_was_opened(lake, tmp_path) -> None:
    reader = LakeReader(lake, domain_of, cache=tmp_path / "cache")

    def found(milestone, at):
        return reader.find(reader.snapshot(), "shimmer", "messages", "message_id", message(milestone, at))

    assert found(1, 2).milestones == [1]
    assert found(2, 0).is_empty
    lakes.build(lake, lakes.OpenLake(lake), lakes.DAY2, 2, 5, "second")
    reader.refresh()
    assert found(2, 4).milestones == [2]
    assert found(2, 5).is_empty
    reader.close()
