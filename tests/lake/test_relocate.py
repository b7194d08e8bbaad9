"""A lake that was copied or moved is refused by every command until `permalake relocate` makes it whole."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from sqlalchemy import insert, select

from permalake.cli import main as front
from permalake.config import Settings
from permalake.errors import PermalakeError
from permalake.iota.contracts import IOTA_TABLES
from permalake.lake import moved_table
from permalake.lake import relocate as relocation
from permalake.lake.catalog import open_table
from permalake.lake.counts import files
from permalake.lake.head import Head
from permalake.lake.identity import open_database, warehouse_id
from permalake.lake.relocate import relocate
from permalake.lake.restore import restore
from permalake.lake.state import (
    attempts,
    lake_ids,
    moment,
    pointers,
    publication_tables,
    served,
)
from permalake.stores.served import note, provisional
from support.lakes import DAY1, DAY2, DAY3, NETWORK, OpenLake, build, messages, settings_of, stage_day, state

TOML = """
[lake]
warehouse = "{warehouse}"
[networks.shimmer]
protocol = "stardust"
bech32_hrp = "smr"
path = "archive"
"""
COMMANDS = (
    ("run", "iota", "--date", "2022-09-28"),
    ("query", "select * from shimmer.messages"),
    ("serve", "--port", "1"),
    ("status",),
    ("status", "--run", "a"),
    ("maintain",),
    ("maintain", "--dry-run"),
    ("quarantine", "list"),
)
BUILT = {DAY1: (6, 6), DAY2: (7, 7)}


def build_days(settings, lake):
    """Build two days, the first twice; stage a third beside, and do not publish it."""
    done = [
        build(settings, lake, DAY1, 1, 5, "a"),
        build(settings, lake, DAY2, 2, 7, "b"),
        build(settings, lake, DAY1, 1, 6, "c"),
    ]
    staged = lake.begin(NETWORK, DAY3, DAY3, "staged")
    stage_day(settings, staged, DAY3, 3, 9)
    staged.pin()
    current = lake.reader.locations(NETWORK)
    with lake.database.write() as connection:
        connection.execute(
            insert(served).values(
                network=NETWORK, store="cassandra", date=DAY1, publication_id=3, states=json.dumps([current])
            )
        )
    lake.leave()
    lake.builds.release(NETWORK, "staged")
    return done


@pytest.fixture
def built(settings, lake):
    """Two days, the first built twice, and a third that is staged beside but not published."""
    return build_days(settings, lake)


def copied(settings, folder) -> Settings:
    # Of the same length: a rewritten file often has the length of the former.
    shutil.copytree(settings.lake.warehouse, folder / "warehous2")
    return settings_of(folder / "warehous2")


@pytest.fixture
def copy(settings, built, tmp_path) -> Settings:
    return copied(settings, tmp_path)


@pytest.fixture(scope="module")
def untouched(tmp_path_factory) -> tuple[Settings, Settings]:
    """A lake and its copy, for tests that change neither."""
    folder = tmp_path_factory.mktemp("untouched")
    settings = settings_of(folder / "warehouse")
    build_days(settings, OpenLake(settings))
    return settings, copied(settings, folder)


def files_of(settings: Settings) -> dict[str, bytes]:
    """Content of every file of a lake but its catalog, which readers open for writing."""
    folder = Path(settings.lake.warehouse)
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and not file.name.startswith("catalog.db")
    }


def recorded(settings: Settings) -> list[str]:
    """Every place that the catalog of a lake records."""
    with open_database(settings).read() as connection:
        columns = (pointers.c.metadata_location, publication_tables.c.metadata_location, served.c.states)
        return [place for column in columns for place in connection.execute(select(column)).scalars()]


def lake_id(settings: Settings) -> str:
    with open_database(settings).read() as connection:
        in_catalog = connection.execute(select(lake_ids.c.lake_id)).scalar_one()
    assert in_catalog == warehouse_id(settings)
    return str(in_catalog)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_refuses_a_copy_on_one_line(untouched, tmp_path, capsys, command) -> None:
    settings, copy = untouched
    before, copied = files_of(settings), files_of(copy)
    config = tmp_path / "permalake.toml"
    config.write_text(TOML.format(warehouse=copy.lake.warehouse), "utf-8")
    with pytest.raises(SystemExit) as end:
        front.main([*command, "--config", str(config)])
    printed = capsys.readouterr()
    assert end.value.code == 1
    assert printed.out == ""
    assert printed.err == (
        f"permalake: the lake was copied or moved: its tables lie in {settings.lake.warehouse}, "
        f"lake.warehouse is {copy.lake.warehouse}; correct lake.warehouse, or run `permalake relocate`, see "
        "docs/runbooks/relocate.md\n"
    )
    assert (files_of(settings), files_of(copy)) == (before, copied)


def test_a_copy_becomes_a_lake_of_its_own(settings, copy, built) -> None:
    before = files_of(settings)
    (done,) = relocate(copy, as_copy=True)
    assert done.problems == {}
    assert done.rewritten > 10
    assert files_of(settings) == before
    assert lake_id(copy) != lake_id(settings)
    assert all(settings.lake.warehouse not in place for place in recorded(copy))

    shutil.rmtree(settings.lake.warehouse)
    lake = OpenLake(copy)
    assert state(lake) == BUILT
    counts = [
        lake.query("select count(*) n from shimmer.messages", moment(one.published_at))["n"][0].as_py()
        for one in built
    ]
    assert counts == [5, 12, 13], "past states are readable"
    build(copy, lake, DAY3, 3, 4, "next")
    assert state(lake) == BUILT | {DAY3: (4, 4)}
    with lake.database.read() as connection:
        assert connection.execute(select(served)).all() == [], "what the stores hold is the original's"
        states = dict(connection.execute(select(attempts.c.run_id, attempts.c.state)).tuples().all())
    assert states["staged"] == "discarded"

    again = files_of(copy)
    (done,) = relocate(copy, as_copy=True)
    assert (done.rewritten, done.problems) == (0, {})
    assert files_of(copy) == again, "a whole lake is left as it is, with its id"


def test_all_snapshots_of_a_relocated_table_lead_to_its_files(settings, copy) -> None:
    relocate(copy, as_copy=True)
    shutil.rmtree(settings.lake.warehouse)
    table = open_table(OpenLake(copy).reader.locations(NETWORK)["messages"])
    assert len(table.metadata.snapshots) > 2
    for snapshot in table.metadata.snapshots:
        for manifest in snapshot.manifests(table.io):
            path = Path(manifest.manifest_path)
            assert manifest.manifest_length == path.stat().st_size
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False):
                assert entry.data_file.file_path.startswith(f"{copy.lake.warehouse}/shimmer/messages/data/")
    assert [entry.metadata_file.startswith(copy.lake.warehouse) for entry in table.metadata.metadata_log]


def test_a_moved_lake_keeps_its_id_and_what_it_knows_of_the_stores(settings, built, tmp_path) -> None:
    before = lake_id(settings)
    shutil.move(settings.lake.warehouse, tmp_path / "moved")
    moved = settings_of(tmp_path / "moved")
    with pytest.raises(PermalakeError, match="was copied or moved"):
        OpenLake(moved)
    (done,) = relocate(moved, as_copy=False)
    assert done.problems == {}
    assert lake_id(moved) == before
    assert state(OpenLake(moved)) == BUILT
    (states,) = [place for place in recorded(moved) if place.startswith("[")]
    assert f'"{moved.lake.warehouse}/shimmer/messages/metadata/' in states


def test_states_of_a_head_that_a_store_may_have_move_too(settings, built, tmp_path) -> None:
    lake = OpenLake(settings)
    head = Head(settings, lake.database, NETWORK, {"messages": IOTA_TABLES["messages"]})
    head.ensure()
    rows = pa.Table.from_pylist(messages(DAY3, 3, 4), schema=IOTA_TABLES["messages"].arrow)
    head.commit(head.write("messages", rows))
    with lake.database.write() as connection:
        note(connection, NETWORK, "bigtable", [DAY3], [head.locations()])
    shutil.move(settings.lake.warehouse, tmp_path / "moved")
    moved = settings_of(tmp_path / "moved")
    (done,) = relocate(moved, as_copy=False)
    assert done.problems == {}
    with OpenLake(moved).database.read() as connection:
        [noted] = provisional(connection, NETWORK, "bigtable")[DAY3]
    (file,) = files(open_table(noted["messages"]))
    assert file.file_path.startswith(f"{moved.lake.warehouse}/{NETWORK}_live/messages/data/")
    assert Path(file.file_path).stat().st_size == file.file_size_in_bytes


@pytest.mark.parametrize("inner", [True, False])
def test_a_lake_moves_into_a_folder_of_its_own_and_out_again(settings, built, tmp_path, inner) -> None:
    """One place begins like the other."""
    deep = Path(settings.lake.warehouse) / "deep"
    places = (deep, Path(settings.lake.warehouse)) if inner else (tmp_path / "warehouse2",)
    for place in places:
        aside = tmp_path / "aside"
        former = deep if deep.exists() else Path(settings.lake.warehouse)
        shutil.move(former, aside)
        place.parent.mkdir(exist_ok=True)
        if place.exists():
            place.rmdir()
        shutil.move(aside, place)
        (done,) = relocate(settings_of(place), as_copy=False)
        assert done.problems == {}
        assert state(OpenLake(settings_of(place))) == BUILT


def test_checksums_of_rewritten_files_go(settings, copy) -> None:
    """Spark puts them beside what it writes to a disk, and compares what it reads with them."""
    folder = Path(copy.lake.warehouse) / NETWORK
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    for file in before:
        (file.parent / f".{file.name}.crc").write_bytes(b"crc\0")
    (done,) = relocate(copy, as_copy=True)
    rewritten = {file for file, content in before.items() if file.read_bytes() != content}
    assert len(rewritten) == done.rewritten
    assert {file for file in before if not (file.parent / f".{file.name}.crc").exists()} == rewritten


def test_a_copy_is_not_taken_for_a_moved_lake(settings, copy) -> None:
    with pytest.raises(PermalakeError, match=r"the original in .*warehouse still holds this lake: --copy"):
        relocate(copy, as_copy=False)
    with pytest.raises(PermalakeError, match="was copied or moved"):
        OpenLake(copy)


def test_missing_and_short_files_are_named(settings, copy) -> None:
    table = open_table(OpenLake(settings).reader.locations(NETWORK)["messages"])
    first, second = (
        Path(copy.lake.warehouse) / task.file.file_path.removeprefix(f"{settings.lake.warehouse}/")
        for task in table.scan().plan_files()
    )
    size = second.stat().st_size
    first.unlink()
    second.write_bytes(second.read_bytes()[:100])
    damaged = OpenLake(settings).reader.locations(NETWORK)["ms_analytics"]
    metadata = Path(copy.lake.warehouse) / damaged.removeprefix(f"{settings.lake.warehouse}/")
    metadata.write_text("{", "utf-8")
    (done,) = relocate(copy, as_copy=True)
    assert done.problems[str(first)] == "is missing"
    assert done.problems[str(second)] == f"has 100 of {size:,} bytes"
    assert done.problems["shimmer.ms_analytics"].startswith(f"{metadata} cannot be read: the file is damaged")
    assert len(done.problems) == 3

    for file in (first, second, metadata):
        original = Path(settings.lake.warehouse) / file.relative_to(copy.lake.warehouse)
        file.write_bytes(original.read_bytes())
    (done,) = relocate(copy, as_copy=False)
    assert done.problems == {}
    shutil.rmtree(settings.lake.warehouse)
    assert state(OpenLake(copy)) == BUILT


def test_what_cannot_be_written_is_an_error(settings, copy, monkeypatch) -> None:
    def full(location, _content):
        raise PermalakeError(f"{location} cannot be written: the disk is full")

    with monkeypatch.context() as full_disk:
        full_disk.setattr(moved_table, "write_whole", full)
        with pytest.raises(PermalakeError, match=r"\.avro cannot be written: the disk is full"):
            relocate(copy, as_copy=True)
    (done,) = relocate(copy, as_copy=True)
    assert done.problems == {}
    assert state(OpenLake(copy)) == BUILT


def test_a_killed_relocation_is_run_again(settings, copy, monkeypatch) -> None:
    with monkeypatch.context() as killed:
        killed.setattr(relocation, "_rewrite_files", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            relocate(copy, as_copy=True)
    with pytest.raises(PermalakeError, match="was copied or moved"):
        OpenLake(copy)
    write = relocation.mark_warehouse
    with monkeypatch.context() as killed:
        killed.setattr(relocation, "mark_warehouse", lambda *arguments: (write(*arguments), 1 / 0))
        with pytest.raises(ZeroDivisionError):
            relocate(copy, as_copy=True)
    with pytest.raises(PermalakeError, match="the catalog is of lake"):
        OpenLake(copy)
    (done,) = relocate(copy, as_copy=True)
    assert done.problems == {}
    assert lake_id(copy) != lake_id(settings)
    assert state(OpenLake(copy)) == BUILT


def test_a_copy_takes_no_catalog_that_may_be_the_originals(settings, built, tmp_path) -> None:
    catalog = tmp_path / "catalog.db"
    shutil.move(Path(settings.lake.warehouse) / "catalog.db", catalog)
    shared = Settings(lake={"warehouse": settings.lake.warehouse, "catalog": f"sqlite:///{catalog}"})
    shutil.copytree(settings.lake.warehouse, tmp_path / "copy")
    copy = Settings(lake={"warehouse": str(tmp_path / "copy"), "catalog": f"sqlite:///{catalog}"})
    with pytest.raises(PermalakeError, match="give the copy an empty database of its own"):
        relocate(copy, as_copy=True)
    assert state(OpenLake(shared)) == BUILT

    own = Settings(lake={"warehouse": str(tmp_path / "copy"), "catalog": f"sqlite:///{tmp_path}/own.db"})
    with pytest.raises(PermalakeError, match="was copied or moved"):
        restore(own)
    (done,) = relocate(own, as_copy=True)
    assert done.problems == {}
    assert lake_id(own) != lake_id(shared)
    shutil.rmtree(settings.lake.warehouse)
    assert state(OpenLake(own)) == BUILT


def test_a_place_without_a_lake_is_refused(tmp_path) -> None:
    with pytest.raises(PermalakeError, match="has no lake id"):
        relocate(settings_of(tmp_path / "nothing"), as_copy=False)
