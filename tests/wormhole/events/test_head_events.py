"""The live head in Bigtable, on a real emulator: as days would have it, and nothing left of it by them."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.cloud.bigtable.row_filters import CellsRowLimitFilter

from permalake.config import load_settings
from permalake.domains import stores_of
from permalake.lake.catalog import locations
from permalake.lake.state import LIVE
from permalake.local.services.daemon import free_port
from permalake.stores import bigtable
from permalake.stores.serve import serve
from permalake.wormhole.contracts import WORMHOLE_TABLES
from permalake.wormhole.events.families import FAMILIES_V1
from permalake.wormhole.events.head_events import HeadEvents
from permalake.wormhole.events.signature_cells import event_rows_v1, key_v1
from support.live_wormhole import DAYS, LiveWormhole, documents, observations
from support.wormhole_world import WORLD

EMULATOR = "BIGTABLE_EMULATOR_HOST"
SECTION = '\n[bigtable]\nproject = "p"\ninstance = "{}"\ntable = "v2"\ntable_v1 = "v1"\n'


class Killed(BaseException):
    """As a process ends that is killed."""


@pytest.fixture
def world(spark, tmp_path, monkeypatch, bigtable_server):
    monkeypatch.setenv(EMULATOR, f"127.0.0.1:{bigtable_server.port}")
    world = LiveWormhole(spark, tmp_path, monkeypatch)
    world.config.write_text(world.config.read_text() + SECTION.format("head"))
    return world


def rows_of(table, instance="head", row_filter=None):
    settings = load_settings().bigtable.model_copy(update={"instance": instance})
    return bigtable._instance(settings).table(table).read_rows(filter_=row_filter)


def cells(table, instance="head"):
    """Every cell of a table with its time."""
    return {
        (row.row_key.decode(), family, qualifier.decode(), cell.timestamp_micros): cell.value
        for row in rows_of(table, instance)
        for family, columns in row.cells.items()
        for qualifier, versions in columns.items()
        for cell in versions
    }


def keys(table):
    """The keys of all rows, of which one cell each is read."""
    return {row.row_key.decode() for row in rows_of(table, row_filter=CellsRowLimitFilter(1))}


def assert_follows(world) -> None:
    seen = {row["row_key"] for row in world.live("message_publication")}
    assert keys("v2") == seen
    assert keys("v1") == set(map(key_v1, seen))


def assert_as_a_day(world) -> None:
    """Version 1 has the cells that a day's writer makes of the same rows."""
    lake = {
        name: world.spark.createDataFrame(
            world.lake.query(f"SELECT * FROM wormhole_live.{name}").to_pylist(), WORMHOLE_TABLES[name].spark
        )
        for name in ("message_publication", "quorum_state", "observations")
    }
    settings = load_settings().bigtable
    bigtable.ensure_table(settings, "of_days", FAMILIES_V1)
    bigtable.write(event_rows_v1(lake, WORLD / "reference"), settings, "of_days")
    made = cells("v1")
    assert made == cells("of_days")
    assert sum(family == "VAAState" for _, family, *_ in made) > len(keys("v1"))


def test_the_head_is_in_bigtable_until_its_days_are(world, monkeypatch, caplog) -> None:
    lines, told = documents(), observations(seed=3)
    lines, late = lines[:-20], lines[-20:]
    parts = [lines[at::4] for at in range(4)]
    follow(world, parts[0], told[::4])
    assert_follows(world)
    # It is away for a batch: the head goes on, and brings all once it is back.
    with monkeypatch.context() as patch:
        patch.setenv(EMULATOR, f"127.0.0.1:{free_port()}")
        some = len(world.seen())
        follow(world, parts[1], told[1::4])
        assert len(world.seen()) > some
        said = [one for one in caplog.messages if "Bigtable lacks a part of the head: Bigtable table" in one]
        assert said
        assert not any("\n" in one for one in said)
    # Killed before, and after, what it noted is written.
    write = HeadEvents._write

    def die(*_):
        raise Killed

    def wrote(*given):
        write(*given)
        raise Killed

    for number, end in ((2, die), (3, wrote)):
        with monkeypatch.context() as patch:
            patch.setattr(HeadEvents, "_write", end)
            with pytest.raises(Killed):
                follow(world, parts[number], told[number::4])
    world.follow()
    assert_follows(world)
    assert_as_a_day(world)
    # A table that somebody has deleted is filled again.
    bigtable._instance(load_settings().bigtable).table("v2").delete()
    world.follow()
    assert_follows(world)
    # Nothing of the head that its day does not have remains.
    file = world.input / f"vaas-{DAYS[0]}.jsonl"
    file.write_bytes(b"".join(line + b"\n" for line in file.read_bytes().splitlines()[::2]))
    for day in DAYS:
        if day == DAYS[1]:  # Nor is anything missing if the head was damaged, which the publication drops.
            Path(place_of(world, "message_publication")).unlink()
            for name, line in late:
                world.append(name, [line])
        world.publish(day)
        settings = load_settings()
        stores = stores_of(settings, "wormhole")
        serve(world.spark, settings, "wormhole", stores)
        world.follow()
        assert keys("v2") == {row["row_key"] for row in world.rows("wormhole.message_publication_with_live")}
    # The head finds that a table is gone; its days are written again, too.
    bigtable._instance(load_settings().bigtable).table("v2").delete()
    world.follow()
    assert sorted(map(str, serve(world.spark, settings, "wormhole", stores)["bigtable"])) == list(DAYS)
    text = world.config.read_text()
    world.config.write_text(text.replace(SECTION.format("head"), SECTION.format("plain")))
    settings = load_settings()
    assert sorted(map(str, serve(world.spark, settings, "wormhole", stores)["bigtable"])) == list(DAYS)
    for table in ("v1", "v2"):
        assert cells(table) == cells(table, "plain")


def place_of(world, table):
    with world.lake.database.read() as connection:
        return locations(connection, LIVE, "wormhole_live")[table]


def follow(world, lines, told) -> None:
    for name in {name for name, _ in lines}:
        world.append(name, [line for file, line in lines if file == name])
    world.observe(told)
    world.follow()
