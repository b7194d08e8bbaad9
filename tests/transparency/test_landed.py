"""Landing a publisher's days: what is landed is what was signed; whoever lies or lags is named."""

from __future__ import annotations

import hashlib
import json
import shutil
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from permalake.contracts.steps import Publishers
from permalake.errors import PermalakeError
from permalake.iota.contracts import IOTA_TABLES
from permalake.transparency import keys, publisher, seen
from permalake.transparency.copies import ExportCopy, digest_there
from permalake.transparency.differences import first_difference
from permalake.transparency.digest import canonical_json
from permalake.transparency.landed import LandedDays, copied_manifest, news
from permalake.transparency.log import Entry, append
from permalake.transparency.places import FolderPlace
from permalake.transparency.publisher import open_publisher
from permalake.transparency.verify import verify
from support.dishonest import changed
from support.lakes import DAY1, DAY2, DAY3, NETWORK, OpenLake, build, settings_of
from support.manipulations import iota_exports
from support.publishers import lying_export
from support.signed_lakes import NAME, at_home, export, grown, log_of, public_key, sign, table_of
from support.web_server import web_server

TABLES = [IOTA_TABLES["messages"], IOTA_TABLES["date_cache"]]


@pytest.fixture(scope="module")
def exports(home, tmp_path_factory):
    """A lake of two days, exported before and after its first day was corrected and a third one came."""
    folder = tmp_path_factory.mktemp("lake")
    return iota_exports(folder).settings, folder


@pytest.fixture(autouse=True)
def forgotten(home) -> None:
    """Each test sees the log for the first time."""
    seen.FILE.unlink(missing_ok=True)


@pytest.fixture
def older(exports):
    return exports[1] / "older"


@pytest.fixture
def newer(exports):
    return exports[1] / "newer"


def landing(place: Path, *urls: object) -> LandedDays:
    return LandedDays(settings_of(place), NETWORK, publishers(*urls))


def publishers(*urls: object) -> Publishers:
    return Publishers(tuple(map(str, urls)), (str(public_key()),))


def contents(days: LandedDays, start=DAY1, end=DAY3) -> dict[str, bytes]:
    """Land some days; return what lies there by manifest and table."""
    return {
        f"{day.manifest} {table.name}": Path(str(day.file(table.name))).read_bytes()
        for day in days.land(start, end, TABLES).values()
        for table in TABLES
    }


def test_an_older_checkpoint_and_a_fork_are_named_and_the_next_publisher_is_asked(
    exports, older, newer, tmp_path
) -> None:
    days = landing(tmp_path / "place", newer)
    days.land(DAY1, DAY3, [])
    with pytest.raises(PermalakeError, match="older than one that this machine saw"):
        landing(tmp_path / "place", older).land(DAY1, DAY1, [])
    log = log_of(exports[0])
    fork = shutil.copytree(newer, tmp_path / "fork")
    others = list(reversed(log.entries))
    append(FolderPlace(str(fork)), "log", None, others, key=keys.signing_key(), origin=log.checkpoint.origin)
    several = landing(tmp_path / "place", fork, older, newer)
    assert several.land(DAY1, DAY1, TABLES)[DAY1].url == str(newer)
    assert ["forked" in one for one in several.remarks] == [True, False]


def test_a_day_that_another_key_signed_is_refused(newer, tmp_path, monkeypatch) -> None:
    mine = publishers(newer)
    at_home(monkeypatch, tmp_path / "thief")
    keys.create_key(NAME)
    with pytest.raises(PermalakeError, match="another key"):
        LandedDays(settings_of(tmp_path), NETWORK, Publishers(mine.urls, (str(public_key()),))).land(
            DAY1, DAY1, []
        )
    either = Publishers(mine.urls, (str(public_key()), *mine.keys))
    assert LandedDays(settings_of(tmp_path), NETWORK, either).land(DAY1, DAY1, [])


def test_a_publisher_with_a_damaged_file_is_named_and_the_next_is_asked(newer, tmp_path) -> None:
    damaged = shutil.copytree(newer, tmp_path / "damaged")
    file = next(damaged.glob(f"data/{NETWORK}/messages/{DAY2}-*.parquet"))
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(PermalakeError, match=f"{DAY2}: .*is damaged"):
        landing(tmp_path / "alone", damaged).land(DAY1, DAY3, TABLES)
    days = landing(tmp_path / "place", damaged, newer)
    found = {day: one.url for day, one in days.land(DAY1, DAY3, TABLES).items()}
    assert found == {DAY1: str(damaged), DAY2: str(newer), DAY3: str(damaged)}
    assert days.remarks == [f"{file} is damaged: not what files.json lists"]


def test_a_publisher_that_lags_is_named(older, newer, tmp_path) -> None:
    behind = landing(tmp_path / "place", older)
    with pytest.raises(PermalakeError, match=f"{DAY3}: no publisher has signed it yet"):
        behind.land(DAY3, DAY3, [])
    assert behind.remarks == [f"{older}: it has signed no day of {NETWORK} after {DAY2}"]
    both = landing(tmp_path / "place", older, newer)
    assert both.land(DAY3, DAY3, [])[DAY3].url == str(newer)
    assert len(both.remarks) == 1


def test_a_day_that_nobody_can_ask_for_is_no_empty_day(newer, tmp_path) -> None:
    """Between others that are signed: who has it may be away, or gone."""
    settings = settings_of(tmp_path / "lake")
    lake = OpenLake(settings)
    build(settings, lake, DAY1, 1, 3, "first")
    build(settings, lake, DAY3, 3, 3, "third")
    sign(settings, lake)
    export(settings, lake, tmp_path / "export")
    place, lacking = tmp_path / "place", tmp_path / "export"
    assert landing(place, lacking).land(DAY2, DAY2, TABLES) == {}
    with pytest.raises(PermalakeError, match=f"{NETWORK} {DAY2}: {tmp_path}/nowhere/files.json is missing"):
        landing(place, tmp_path / "nowhere", lacking).land(DAY1, DAY3, TABLES)
    assert landing(place, tmp_path / "nowhere", lacking).land(DAY3, DAY3, TABLES)[DAY3].url == str(lacking)
    assert landing(place, newer).land(DAY2, DAY2, TABLES)
    with pytest.raises(PermalakeError, match=f"{DAY2}: no publisher that is named has it any more"):
        landing(place, lacking).land(DAY1, DAY3, TABLES)
    assert set(landing(place, lacking).land(DAY1, DAY3, [], keep=False)) == {DAY1, DAY3}


def test_nothing_is_fetched_twice_and_a_half_landed_day_is_gone_on_with(newer, tmp_path) -> None:
    with web_server(newer) as (url, asked):
        landing(tmp_path / "place", url).land(DAY1, DAY3, TABLES[:1])
        landing(tmp_path / "place", url).land(DAY1, DAY3, TABLES)
        again = contents(landing(tmp_path / "place", url))
    data = [path for path in asked if path.startswith("/data/")]
    assert len(again) == len(data) == len(set(data)) == 6


@pytest.mark.parametrize("force", [False, True])
def test_a_landed_file_that_is_not_what_was_signed_is_landed_again(newer, tmp_path, force) -> None:
    """One with other rows, with the same in another type, and one that is no table."""
    place = tmp_path / "place"
    honest = contents(landing(place, newer))
    first, second = (
        Path(day.file("messages")) for day in landing(place, newer).land(DAY1, DAY2, TABLES).values()
    )
    rows = pq.read_table(first)
    at = rows.schema.get_field_index("version")
    pq.write_table(rows.set_column(at, "version", rows["version"].cast(pa.int64())), first)
    for poison in (first.read_bytes(), second.read_bytes(), b"", b"PAR1"):
        first.write_bytes(poison)
        landing(place, newer).land(DAY1, DAY1, TABLES, force=force)
        assert contents(landing(place, newer)) == honest


def test_what_is_landed_is_what_was_hashed(newer, tmp_path, monkeypatch) -> None:
    """Though its host writes into the file as soon as it was read."""
    copy = shutil.copytree(newer, tmp_path / "copy")
    [file] = copy.glob(f"data/*/messages/{DAY3}-*.parquet")
    honest, rows = file.read_bytes(), pq.read_table(file, partitioning=None)

    def hashed(*arguments):
        made = digest_there(*arguments)
        file.write_bytes(honest[::-1])
        return made

    monkeypatch.setattr(publisher, "digest_there", hashed)
    [day] = landing(tmp_path / "place", copy).land(DAY3, DAY3, TABLES[:1]).values()
    assert file.read_bytes() != honest
    assert pq.read_table(day.file("messages"), partitioning=None).equals(rows)


def test_a_day_that_did_not_hold_is_not_taken_again_unless_forced_or_signed_anew(
    older, newer, tmp_path
) -> None:
    days = landing(tmp_path / "place", older)
    days.land(DAY1, DAY1, TABLES)
    days.refuse(DAY1, "messages differ")
    with pytest.raises(PermalakeError, match=r"did not hold before \(messages differ\)"):
        landing(tmp_path / "place", older).land(DAY1, DAY1, TABLES)
    assert landing(tmp_path / "place", older).land(DAY1, DAY1, TABLES, force=True)
    assert landing(tmp_path / "place", newer).land(DAY1, DAY1, TABLES)


def test_the_last_day_before_is_landed_over_a_gap(older, newer, tmp_path) -> None:
    days = landing(tmp_path / "place", tmp_path / "nowhere", newer)
    assert days.land_before(DAY3 + timedelta(5), TABLES).date == DAY3
    assert days.land_before(DAY2, TABLES).date == DAY1
    assert days.land_before(DAY1, TABLES) is None
    assert days.day(DAY1) is None


def test_days_that_were_signed_anew_are_told(older, newer, tmp_path) -> None:
    landed = landing(tmp_path / "place", older).land(DAY1, DAY2, [])
    notes = {day: ["another note", one.note] for day, one in landed.items()}
    origin = landed[DAY1].origin
    assert copied_manifest(notes[DAY1]) == (origin, landed[DAY1].manifest)
    assert news(publishers(older), NETWORK, notes) == {}
    assert news(publishers(newer), NETWORK, notes) == {DAY1: f"{origin} has signed it anew"}
    said = []
    assert news(publishers(tmp_path / "nowhere"), NETWORK, notes, said.append) == {}
    assert "nowhere" in said[0]
    assert news(publishers(newer), NETWORK, {DAY1: ["built here"]}) == {}
    damaged = shutil.copytree(newer, tmp_path / "damaged")
    shutil.rmtree(damaged / "log" / "manifests")
    assert news(publishers(damaged, newer), NETWORK, notes, said.append) == {
        DAY1: f"{origin} has signed it anew"
    }
    assert f"{damaged}/log/manifests/" in said[1]


@pytest.fixture
def corrected(tmp_path, monkeypatch):
    """A lake of two days, copied from an export, and corrected since; it is signed by nobody yet."""
    at_home(monkeypatch, tmp_path / "home")
    keys.create_key(NAME)
    settings = settings_of(tmp_path / "lake")
    lake = OpenLake(settings)
    for number, day in enumerate((DAY1, DAY2), 1):
        build(settings, lake, day, number, 3, f"first {number}")
    sign(settings, lake)
    export(settings, lake, tmp_path / "copied")
    landed = landing(tmp_path / "place", tmp_path / "copied").land(DAY1, DAY2, [])
    for number, day in enumerate((DAY1, DAY2), 1):
        build(settings, lake, day, number, 4, f"again {number}")
    return settings, lake, {day: [one.note] for day, one in landed.items()}


def test_a_publisher_that_changed_its_key_is_followed(corrected, tmp_path) -> None:
    """Its log has another name then; the lake's part of it stays."""
    settings, lake, notes = corrected
    keys.KEY_FILE.unlink()
    shutil.move(Path(settings.lake.warehouse, "_log"), tmp_path / "old_log")
    keys.create_key("example.org/another")
    sign(settings, lake)
    export(settings, lake, tmp_path / "rotated")
    rotated = publishers(tmp_path / "rotated")
    changed = news(rotated, NETWORK, notes)
    assert set(changed) == {DAY1, DAY2}
    assert changed[DAY1].startswith("example.org/another/")
    days = LandedDays(settings_of(tmp_path / "place"), NETWORK, rotated).land(DAY1, DAY2, [])
    assert news(rotated, NETWORK, {day: [one.note] for day, one in days.items()}) == {}


def test_a_damaged_manifest_does_not_hide_what_was_signed_anew(corrected, tmp_path) -> None:
    settings, lake, notes = corrected
    sign(settings, lake)
    export(settings, lake, tmp_path / "export")
    shutil.rmtree(tmp_path / "export" / "log" / "manifests" / NETWORK / str(DAY1))
    said = []
    assert set(news(publishers(tmp_path / "export"), NETWORK, notes, said.append)) == {DAY1, DAY2}
    assert [f"manifests/{NETWORK}/{DAY1}/" in line for line in said] == [True]


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest: manifest["tables"]["messages"].update(digest="../../../../../../stolen"),
        lambda manifest: manifest["tables"]["messages"].pop("rows"),
        lambda manifest: manifest.pop("tables"),
        lambda manifest: manifest.update(publication="1"),
        lambda manifest: manifest["raw"].update(other=""),
        lambda manifest: manifest["verified"].update(coordinator={"threshold": 2, "keys": [7]}),
        lambda manifest: manifest["verified"].update(guardian_sets={"4": {"quorum": 13}}),
        lambda _: b"[]",
        lambda _: b"[" * 100_000,
        lambda _: b"\xff",
    ],
)
def test_a_signed_manifest_that_is_none_is_refused(exports, newer, tmp_path, change) -> None:
    """Even who holds the key cannot make a mirror write where it should not."""
    copy = shutil.copytree(newer, tmp_path / "copy")
    log = log_of(exports[0])
    entry = log.latest[NETWORK, str(DAY1)]
    manifest = json.loads((copy / "log" / entry.path).read_text())
    content = change(manifest)
    if not isinstance(content, bytes):
        content = canonical_json(manifest)
    lie = Entry(NETWORK, str(DAY1), entry.publication + 9, hashlib.sha256(content).hexdigest())
    place = FolderPlace(str(copy))
    place.write(f"log/{lie.path}", content)
    append(place, "log", log, [lie], key=keys.signing_key(), origin=log.checkpoint.origin)
    before = set(tmp_path.rglob("*"))
    with pytest.raises(PermalakeError, match=f"the manifest of {NETWORK} {DAY1} is not whole"):
        landing(tmp_path / "place", copy).land(DAY1, DAY1, TABLES)
    with pytest.raises(PermalakeError, match="is not whole"):
        verify(ExportCopy(place), table_of, key=public_key())
    assert not [path for path in set(tmp_path.rglob("*")) - before if path.suffix == ".parquet"]


@pytest.mark.parametrize(
    "content",
    [b'[{"path": ["x"], "bytes": 1, "sha256": ""}]', b"[" * 100_000, b"[null]", b"{}", b'[{"path": null}]'],
)
def test_a_host_whose_list_is_none_is_named_and_the_next_is_asked(newer, tmp_path, content) -> None:
    bad = shutil.copytree(newer, tmp_path / "bad")
    (bad / "files.json").write_bytes(content)
    days = landing(tmp_path / "place", bad, newer)
    assert days.land(DAY1, DAY1, TABLES)[DAY1].url == str(newer)
    assert days.remarks == [f"{bad}/files.json is damaged"]


def test_rows_without_a_value_that_the_contract_asks_for_are_refused(newer, tmp_path) -> None:
    """Though their publisher has signed them: what builds from them counts on it."""
    lying = shutil.copytree(newer, tmp_path / "lying")
    lying_export(lying, NETWORK, "messages", lambda rows: changed(rows, 7, message=None))
    with pytest.raises(PermalakeError, match=rf"^{NETWORK} {DAY1}: {lying}: .* a row has no message$"):
        landing(tmp_path / "place", lying).land(DAY1, DAY3, TABLES)


def test_a_day_that_was_signed_before_a_column_came_is_landed_without_its_values(newer, tmp_path) -> None:
    """What a host puts there nobody has signed; what a mirror makes there is not compared."""
    later = grown(IOTA_TABLES["messages"])
    [file] = newer.glob(f"data/*/messages/{DAY3}-*.parquet")
    signed = pq.read_table(file, partitioning=None)
    for _ in range(2):
        landed = landing(tmp_path / "place", newer).land(DAY3, DAY3, [later])[DAY3]
        rows = pq.read_table(landed.file("messages"), partitioning=None)
        assert rows["extra"].null_count == len(rows) == 5
        assert rows.drop_columns(["extra"]).equals(signed)
        filled = rows.set_column(2, "extra", pa.array(["made here"] * 5))
        assert first_difference(landed, {"messages": later}, "day", lambda _: ds.dataset(filled)) is None  # noqa: B023
        pq.write_table(filled, landed.file("messages"))
    lying = shutil.copytree(newer, tmp_path / "lying")
    pq.write_table(filled, lying / file.relative_to(newer))
    (lying / "files.json").write_text("[]")
    with pytest.raises(PermalakeError, match=r"has the column .extra string. instead of"):
        landing(tmp_path / "other", lying).land(DAY3, DAY3, [later])


def test_the_first_difference_names_table_row_and_column(newer, tmp_path) -> None:
    landed = landing(tmp_path / "place", newer).land(DAY1, DAY1, list(IOTA_TABLES.values()))[DAY1]
    signed = {name: ds.dataset(landed.file(name)).to_table() for name in landed.tables}

    def difference(**changed):
        def rows(name):
            empty = IOTA_TABLES[name].arrow.empty_table()
            return ds.dataset(changed.get(name, signed.get(name, empty)))

        return first_difference(landed, IOTA_TABLES, "day", rows)

    assert difference() is None
    messages, cache = signed["messages"], signed["date_cache"]
    at = cache.schema.get_field_index("end_ms")
    other = cache.set_column(at, cache.field(at), pa.array([9], cache.field(at).type))
    assert difference(date_cache=other) == (
        f"{NETWORK}.date_cache of {DAY1} is not what {landed.origin} signed: 1 rows here, 1 there; "
        f"first at date {DAY1}: end_ms is 9 here, 1 there"
    )
    assert difference(messages=messages.slice(0, 699)).endswith("the row is there alone")
    assert "white_flag_index 699" in difference(messages=messages.slice(0, 699))
    assert difference(milestones=_milestone(messages)) == (
        f"{NETWORK}.milestones of {DAY1}: there are 1 rows here, and {landed.origin} signed none"
    )
    shutil.move(newer / "data", tmp_path / "data")
    try:
        assert difference(date_cache=other).endswith("1 there")
    finally:
        shutil.move(tmp_path / "data", newer / "data")


def _milestone(messages):
    table = IOTA_TABLES["milestones"].arrow
    row = {
        "milestone_index": 1,
        "message_id": None,
        "timestamp": 0,
        "payload": b"",
        "milestone_id": "00" * 32,
        "date": messages["date"][0].as_py(),
    }
    return table.empty_table().from_pylist([row], schema=table)


def test_a_publisher_tells_its_days(newer) -> None:
    publisher = open_publisher(str(newer))
    assert list(publisher.days(NETWORK)) == [DAY1, DAY2, DAY3]
    assert publisher.networks == [NETWORK]
    assert publisher.days("other") == {}
    assert DAY1 + timedelta(2) == DAY3
