"""The id index: places of a value, from segments that are merged and survive a restart."""

from __future__ import annotations

from datetime import date, timedelta

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


def add(index, number, values, places):
    index.add({DAY + timedelta(number): f"files {number}"}, pairs(values, places))


def test_the_hash_is_duckdbs():
    value = "smr1qpt"
    found = duckdb.connect().execute("select md5_number_lower($1)", [value]).fetchone()
    assert found == (hashed(value),)


def test_a_value_is_found_wherever_it_was_added(tmp_path):
    index = IdIndex(tmp_path)
    add(index, 0, ["a", "b", "a"], [1, 1, 2])
    add(index, 1, ["a", "c"], [7, 7])
    assert index.find("a") == [1, 2, 7]
    assert index.find("c") == [7]
    assert index.find("absent") == []


def test_many_days_make_few_segments_and_lose_nothing(tmp_path):
    index = IdIndex(tmp_path)
    for number in range(300):
        add(index, number, [f"{number}-{at}" for at in range(number % 7)], [number] * (number % 7))
    assert len(list(tmp_path.glob("*.keys.npy"))) <= 20
    reopened = IdIndex(tmp_path)
    for number in range(300):
        for at in range(number % 7):
            assert reopened.find(f"{number}-{at}") == [number]


def test_a_day_counts_as_indexed_until_its_files_change(tmp_path):
    index = IdIndex(tmp_path)
    add(index, 0, ["a"], [1])
    later = DAY + timedelta(1)
    assert IdIndex(tmp_path).missing({DAY: "files 0", later: "other"}) == [later]
    assert index.missing({DAY: "rewritten"}) == [DAY]


def test_two_servers_share_a_folder(tmp_path):
    one, other = IdIndex(tmp_path), IdIndex(tmp_path)
    for number in range(20):
        add(one if number % 2 else other, number, [f"{number}"], [number])
    both = IdIndex(tmp_path)
    assert [both.find(f"{number}") for number in range(20)] == [[number] for number in range(20)]


def test_an_index_of_another_format_is_built_again(tmp_path):
    add(IdIndex(tmp_path), 0, ["a"], [1])
    manifest = tmp_path / "index.json"
    manifest.write_text(manifest.read_text().replace('"format": 1', '"format": 0'))
    assert IdIndex(tmp_path).missing({DAY: "files 0"}) == [DAY]


@pytest.fixture
def lake(tmp_path):
    settings = lakes.settings_of(tmp_path / "warehouse")
    lakes.build(settings, lakes.OpenLake(settings), lakes.DAY1, 1, 3, "first")
    return settings


def message(milestone, at):
    return f"{milestone:060x}{at:04x}"


def test_the_reader_finds_messages_of_days_published_before_and_after_it_was_opened(lake, tmp_path):
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
