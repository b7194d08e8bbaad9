"""VAAs that come in late, through the real job and a real lake: which days are stale, and what ends it."""

from __future__ import annotations

import base64
import datetime as dt
import json

import pytest

from permalake.config import CONFIG_VARIABLE, load_settings
from support.guardians import GUARDIAN_SETS, vaa
from support.jobs import job
from support.lakes import OpenLake, pass_audit

FIRST, SECOND, THIRD = (dt.date(2024, 3, day) for day in (10, 11, 12))


class World:
    """A lake built from files that are added one by one."""

    def __init__(self, spark, folder):
        self.spark = spark
        self.folder = folder
        self.runs = 0
        (folder / "input").mkdir()
        (folder / "reference").mkdir()
        (folder / "reference" / "guardian_sets.json").write_text(json.dumps(GUARDIAN_SETS))
        (folder / "permalake.toml").write_text(
            f"""
            [lake]
            warehouse = "{folder}/warehouse"
            [wormhole]
            path = "{folder}/input"
            reference = "{folder}/reference"
            """
        )

    def add(self, name, *raws) -> None:
        lines = [json.dumps({"vaa": base64.b64encode(raw).decode()}) for raw in raws]
        (self.folder / "input" / name).write_text("\n".join(lines))

    def build(self, start, end):
        self.runs += 1
        run_id = f"run {self.runs}"
        days = ["--network", "wormhole", "--start", str(start), "--end", str(end), "--run-id", run_id]
        job("wormhole_ingest")(days, self.spark)
        self.lake = OpenLake(load_settings())
        attempt = self.lake.resume("wormhole", run_id)
        self.lake.builds.publish(pass_audit(attempt))
        return self.stale()

    def stale(self):
        return [day.date for day in self.lake.reader.status("wormhole") if day.stale]

    def published(self):
        sql = (
            "select date, cast(sequence as bigint) as sequence from wormhole.message_publication order by all"
        )
        return [(row["date"], row["sequence"]) for row in self.lake.query(sql).to_pylist()]


@pytest.fixture
def world(spark, tmp_path, monkeypatch):
    monkeypatch.setenv(CONFIG_VARIABLE, str(tmp_path / "permalake.toml"))
    return World(spark.newSession(), tmp_path)


def test_a_file_with_vaas_of_days_that_are_built_makes_them_stale(world) -> None:
    short = vaa(2, SECOND, signers=3)
    world.add("a.jsonl", vaa(1, FIRST), short)
    assert world.build(FIRST, SECOND) == []
    world.add("copies.jsonl", vaa(1, FIRST), vaa(1, FIRST, signers=3))
    assert world.build(SECOND, SECOND) == [], "nothing new in it"
    world.add("b.jsonl", vaa(5, FIRST), vaa(2, SECOND), vaa(3, THIRD))
    assert world.build(THIRD, THIRD) == [FIRST, SECOND], "a new VAA, and one with more signatures"
    assert world.published() == [(FIRST, 1), (SECOND, 2), (THIRD, 3)]
    assert world.build(FIRST, FIRST) == [SECOND]
    assert world.published() == [(FIRST, 1), (FIRST, 5), (SECOND, 2), (THIRD, 3)]


def test_a_file_with_vaas_of_a_day_that_was_published_without_any_makes_it_stale(world) -> None:
    assert world.build(FIRST, FIRST) == []
    world.add("a.jsonl", vaa(1, FIRST))
    assert world.build(SECOND, SECOND) == [FIRST]
    assert world.build(FIRST, FIRST) == []
    assert world.published() == [(FIRST, 1)]


def test_a_conflict_across_days_takes_both_back(world) -> None:
    world.add("a.jsonl", vaa(1, FIRST), vaa(2, THIRD))
    world.build(FIRST, THIRD)
    world.add("b.jsonl", vaa(2, FIRST, nonce=7))
    assert world.build(FIRST, FIRST) == [THIRD], "its message was published there with another digest"
    assert world.published() == [(FIRST, 1), (THIRD, 2)]
    assert world.build(THIRD, THIRD) == []
    assert world.published() == [(FIRST, 1)]
    reasons = world.lake.reader.rejected("wormhole").select(["date", "reason"]).to_pylist()
    assert [tuple(row.values()) for row in reasons] == [
        (FIRST, "conflicting_digest"),
        (THIRD, "conflicting_digest"),
    ]
