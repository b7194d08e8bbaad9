"""Publications and the log: every change of a day is signed once, and only changes are."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from threading import Event, Thread, current_thread

import pytest

from permalake.domains import domain_of
from permalake.lake.relocate import relocate
from permalake.lake.restore import restore
from permalake.transparency import keys, signing
from permalake.transparency.digest import canonical_json
from permalake.transparency.log import InvalidLogError
from permalake.transparency.notes import InvalidNoteError
from permalake.transparency.verify import verify
from support.lakes import DAY1, DAY2, DAY3, NETWORK, OpenLake, build, pass_audit, settings_of
from support.signed_lakes import NAME, at_home, lake_copy, log_of, sign, table_of


@pytest.fixture
def settings(tmp_path, monkeypatch):
    at_home(monkeypatch, tmp_path / "home")
    return settings_of(tmp_path / "warehouse")


@pytest.fixture
def lake(settings):
    return OpenLake(settings)


def manifest(settings, entry):
    content = Path(settings.lake.warehouse, "_log", entry.path).read_bytes()
    assert sha256(content).hexdigest() == entry.manifest
    assert content == canonical_json(json.loads(content))
    return json.loads(content)


def interrupt_signing(settings, lake, monkeypatch):
    """Sign as a process that is killed before the log has what it signed."""

    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(signing, "append", killed)
        with pytest.raises(KeyboardInterrupt):
            sign(settings, lake)


def test_without_a_key_nothing_is_signed_and_with_one_all_that_is_published(settings, lake) -> None:
    build(settings, lake, DAY1, 1, 4, "first")
    assert sign(settings, lake) == []
    keys.create_key(NAME)
    build(settings, lake, DAY2, 2, 5, "second")
    assert sign(settings, lake) == [(NETWORK, str(DAY1)), (NETWORK, str(DAY2))]
    assert sign(settings, lake) == []


def test_a_manifest_tells_what_the_day_holds_and_what_it_replaces(settings, lake) -> None:
    keys.create_key(NAME)
    build(settings, lake, DAY1, 1, 4, "first")
    sign(settings, lake)
    build(settings, lake, DAY1, 1, 7, "corrected")
    sign(settings, lake)
    before, after = log_of(settings).entries
    document = manifest(settings, after)
    assert document["replaces"] == before.manifest
    assert {name: table["rows"] for name, table in document["tables"].items()} == {
        "messages": 7,
        "ms_analytics": 1,
        "date_cache": 1,
    }
    assert document["raw"] == {"messages": document["tables"]["messages"]["digest"]}
    assert document["tables"]["messages"] != manifest(settings, before)["tables"]["messages"]
    assert document["tables"]["date_cache"] == manifest(settings, before)["tables"]["date_cache"]


def test_the_same_rows_published_again_are_not_signed_again(settings, lake) -> None:
    keys.create_key(NAME)
    for run in ("first", "again"):
        build(settings, lake, DAY1, 1, 4, run)
        sign(settings, lake)
    assert len(log_of(settings).entries) == 1


def test_a_day_that_lost_its_rows_has_a_manifest_without_tables(settings, lake) -> None:
    keys.create_key(NAME)
    build(settings, lake, DAY1, 1, 4, "first")
    sign(settings, lake)
    build(settings, lake, DAY1, 1, 0, "emptied")
    sign(settings, lake)
    assert "messages" not in manifest(settings, log_of(settings).entries[-1])["tables"]
    verify(lake_copy(settings, lake), table_of)


@pytest.mark.parametrize("before", [4, 0])
def test_a_day_whose_signing_was_interrupted_is_signed_as_it_is(settings, lake, monkeypatch, before) -> None:
    """The names of its data files are kept before the log has it, but not for its former manifest."""
    keys.create_key(NAME)
    build(settings, lake, DAY1, 1, before, "first")
    sign(settings, lake)
    build(settings, lake, DAY1, 1, 7, "corrected")
    interrupt_signing(settings, lake, monkeypatch)
    assert sign(settings, lake) == [(NETWORK, str(DAY1))]
    verify(lake_copy(settings, lake), table_of)


def test_days_of_a_range_and_days_one_by_one_have_equal_digests(settings, lake, tmp_path) -> None:
    keys.create_key(NAME)
    for at, day in enumerate((DAY3, DAY1, DAY2)):
        build(settings, lake, day, day.day, 300, f"run-{at}")
    sign(settings, lake)
    other_settings = settings_of(tmp_path / "other")
    other = OpenLake(other_settings)
    attempt = other.begin(NETWORK, DAY1, DAY3, "range")
    from support.lakes import analytics, cache, messages, put

    for table, rows in (("messages", messages), ("ms_analytics", analytics)):
        put(
            other_settings,
            attempt,
            table,
            [row for day in (DAY1, DAY2, DAY3) for row in rows(day, day.day, 300)],
        )
    put(
        other_settings,
        attempt,
        "date_cache",
        [row for day in (DAY1, DAY2, DAY3) for row in cache(day, day.day, day.day)],
    )
    other.builds.publish(pass_audit(attempt))
    sign(other_settings, other)

    def digests(of):
        return {
            (entry.date, name): table["digest"]
            for entry in log_of(of).entries
            for name, table in manifest(of, entry)["tables"].items()
        }

    assert digests(settings) == digests(other_settings)


def test_processes_that_sign_at_once_sign_each_day_once(settings, lake) -> None:
    keys.create_key(NAME)
    for at, day in enumerate((DAY1, DAY2, DAY3)):
        build(settings, lake, day, at + 1, 3, f"run-{at}")
    with ThreadPoolExecutor(4) as pool:
        signed = list(pool.map(lambda _: sign(settings, OpenLake(settings)), range(4)))
    assert sorted(day for days in signed for day in days) == [
        (NETWORK, str(day)) for day in (DAY1, DAY2, DAY3)
    ]
    assert len(log_of(settings).entries) == 3


def test_runs_that_sign_a_day_at_once_log_it_once(settings, lake, monkeypatch) -> None:
    """The other run reads before the second day is published, and appends after this one has read."""
    keys.create_key(NAME)
    build(settings, lake, DAY1, 1, 3, "first")
    make, has_read, may_append = signing.make_manifest, Event(), Event()
    other = Thread(target=lambda: sign(settings, OpenLake(settings)))

    def make_in_turn(*arguments):
        made = make(*arguments)
        if current_thread() is other:
            has_read.set()
            may_append.wait(60)
        else:
            may_append.set()
            other.join(60)
        return made

    monkeypatch.setattr(signing, "make_manifest", make_in_turn)
    other.start()
    assert has_read.wait(60)
    build(settings, lake, DAY2, 2, 3, "second")
    assert sign(settings, lake) == [(NETWORK, str(DAY2))]
    entries = log_of(settings).entries
    assert [(entry.date, entry.publication) for entry in entries] == [(str(DAY1), 1), (str(DAY2), 2)]
    assert [manifest(settings, entry)["replaces"] for entry in entries] == [None, None]
    verify(lake_copy(settings, lake), table_of)


def test_a_run_that_was_overtaken_signs_no_state_of_the_past(settings, lake, monkeypatch) -> None:
    """Another one has put the day back, and found it signed as it is."""
    keys.create_key(NAME)
    build(settings, lake, DAY1, 1, 3, "first")
    sign(settings, lake)
    build(settings, lake, DAY1, 1, 7, "corrected")
    make, overtaken = signing.make_manifest, []

    def overtake(*arguments):
        made = make(*arguments)
        if not overtaken:
            overtaken.append(True)
            build(settings, lake, DAY1, 1, 3, "put back")
            assert sign(settings, lake) == []
        return made

    monkeypatch.setattr(signing, "make_manifest", overtake)
    assert sign(settings, lake) == []
    verify(lake_copy(settings, lake), table_of)


def test_another_machine_s_key_or_a_damaged_log_signs_nothing(settings, lake) -> None:
    keys.create_key(NAME)
    build(settings, lake, DAY1, 1, 3, "first")
    sign(settings, lake)
    build(settings, lake, DAY2, 2, 3, "second")
    mine = keys.KEY_FILE.read_text()
    keys.KEY_FILE.unlink()
    keys.create_key(NAME)
    with pytest.raises(InvalidNoteError):
        sign(settings, lake)
    keys.KEY_FILE.write_text(mine)
    manifest_file = Path(settings.lake.warehouse, "_log", log_of(settings).entries[0].path)
    sound = manifest_file.read_bytes()
    build(settings, lake, DAY1, 1, 9, "third")
    manifest_file.write_bytes(sound[:-1])
    with pytest.raises(InvalidLogError, match="damaged"):
        sign(settings, lake)
    manifest_file.write_bytes(sound)
    assert sorted(sign(settings, lake)) == [(NETWORK, str(DAY1)), (NETWORK, str(DAY2))]


def test_the_log_survives_a_lost_catalog_and_lost_lists_of_files(settings, lake) -> None:
    keys.create_key(NAME)
    build(settings, lake, DAY1, 1, 3, "first")
    build(settings, lake, DAY2, 2, 3, "second")
    sign(settings, lake)
    lake.leave()
    Path(settings.lake.warehouse, "catalog.db").unlink()
    shutil.rmtree(Path(settings.lake.warehouse, "_log", "files"))
    restore(settings)
    restored = OpenLake(settings)
    assert sign(settings, restored) == []
    assert verify(lake_copy(settings, restored), table_of).days == {NETWORK: 2}
    build(settings, restored, DAY3, 3, 3, "third")
    assert sign(settings, restored) == [(NETWORK, str(DAY3))]


def test_a_lake_is_checked_as_it_was_read_though_its_log_goes_on(settings, lake) -> None:
    keys.create_key(NAME)
    build(settings, lake, DAY1, 1, 3, "first")
    copy, key = signing.signed_lake(settings, lake.database, domain_of)
    build(settings, lake, DAY1, 1, 7, "corrected")
    build(settings, lake, DAY2, 2, 5, "second")
    assert sign(settings, lake)
    assert verify(copy, table_of, key=key).rows == {NETWORK: 3 + 2}
    again, _ = signing.signed_lake(settings, lake.database, domain_of)
    assert verify(again, table_of, key=key).rows == {NETWORK: 7 + 5 + 2 * 2}


def test_a_log_that_is_lost_or_older_than_it_was_is_restored_and_not_begun_anew(
    settings, lake, tmp_path
) -> None:
    keys.create_key(NAME)
    folder = Path(settings.lake.warehouse, "_log")
    build(settings, lake, DAY1, 1, 3, "first")
    sign(settings, lake)
    shutil.copytree(folder, tmp_path / "older")
    build(settings, lake, DAY2, 2, 3, "second")
    sign(settings, lake)
    shutil.move(folder, tmp_path / "whole")
    build(settings, lake, DAY3, 3, 3, "third")
    with pytest.raises(InvalidLogError, match="restore it from an export"):
        sign(settings, lake)
    shutil.copytree(tmp_path / "older", folder)
    with pytest.raises(InvalidLogError, match="restore it from an export"):
        sign(settings, lake)
    shutil.copytree(tmp_path / "whole", folder, dirs_exist_ok=True)
    assert sign(settings, lake) == [(NETWORK, str(DAY3))]
    assert verify(lake_copy(settings, lake), table_of).days == {NETWORK: 3}


def test_a_copy_of_a_lake_may_begin_a_log_of_its_own(settings, lake, tmp_path) -> None:
    keys.create_key(NAME)
    build(settings, lake, DAY1, 1, 3, "first")
    sign(settings, lake)
    lake.leave()
    copy = settings_of(shutil.copytree(settings.lake.warehouse, tmp_path / "copy"))
    shutil.rmtree(Path(copy.lake.warehouse, "_log"))
    relocate(copy, as_copy=True)
    assert sign(copy, OpenLake(copy)) == [(NETWORK, str(DAY1))]
