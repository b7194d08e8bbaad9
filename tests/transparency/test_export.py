"""Exports of a small lake: copied over plain HTTP and checked."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from functools import partial

import duckdb
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from permalake.errors import PermalakeError
from permalake.paths import ROOT
from permalake.transparency import keys, seen
from permalake.transparency.copies import DamagedCopyError, ExportCopy
from permalake.transparency.export import Export
from permalake.transparency.log import append, read_log
from permalake.transparency.notes import SignerKey
from permalake.transparency.places import FolderPlace, open_place
from permalake.transparency.report import UNSIGNED
from permalake.transparency.verify import open_checked, verify
from support.lakes import DAY1, NETWORK, OpenLake, build, settings_of
from support.manipulations import iota_exports
from support.signed_lakes import (
    NAME,
    at_home,
    export,
    grown,
    lake_copy,
    log_of,
    public_key,
    sign,
    table_of,
)
from support.web_server import web_server


@pytest.fixture(scope="module")
def exports(home, tmp_path_factory):
    """A lake after two publications, exported after each: the first day was corrected, a third one added."""
    folder = tmp_path_factory.mktemp("lake")
    made = iota_exports(folder)
    return made.settings, made.lake, folder


@pytest.fixture(autouse=True)
def forgotten(home) -> None:
    """Each test sees the log for the first time."""
    seen.FILE.unlink(missing_ok=True)


@pytest.fixture
def copy(exports, tmp_path):
    return shutil.copytree(exports[2] / "newer", tmp_path / "copy")


def checked(place, key=None):
    return verify(ExportCopy(open_place(str(place))), table_of, key=key or public_key())


def test_a_copy_is_checked_over_http_and_in_a_folder(copy) -> None:
    with web_server(copy) as (url, _):
        results = [checked(url), checked(copy)]
    for result in results:
        assert result.days == {NETWORK: 3}
        assert result.rows == {NETWORK: 700 + 40 + 5 + 2 * 3}


def test_the_second_verifier_agrees_and_names_what_is_wrong(copy) -> None:
    def second(*arguments):
        command = [sys.executable, ROOT / "docs" / "verify.py", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    done = second(copy, str(public_key()))
    assert (done.returncode, done.stdout) == (
        0,
        "3 days, 9 tables of days, 751 rows: all as they were signed\n",
    )
    file = next(copy.glob("data/*/messages/*.parquet"))
    file.write_bytes(b"")
    assert file.name in second(copy, str(public_key())).stderr


def test_the_second_verifier_is_short_and_imports_nothing_of_ours() -> None:
    text = (ROOT / "docs" / "verify.py").read_text()
    assert len(text.splitlines()) <= 200
    assert "permalake" not in [
        line.split()[1].split(".")[0] for line in text.splitlines() if "import " in line
    ]


def test_only_what_changed_is_written_and_old_files_go_one_export_later(exports, copy) -> None:
    settings, lake, folder = exports
    before = set((folder / "older").rglob("*.parquet"))
    after = {path.relative_to(copy) for path in copy.rglob("*.parquet")}
    assert {path.relative_to(folder / "older") for path in before} < after
    again = export(settings, lake, copy)
    assert (again.days, again.written) == (3, 0)
    left = {path.relative_to(copy) for path in copy.rglob("*.parquet")}
    assert left == {path for path in after if str(path) in {one["path"] for one in listed(copy)}}
    checked(copy)


class _Watched(FolderPlace):
    """A folder that calls ``after`` at each change, with the number of changes so far."""

    def __init__(self, folder, after):
        super().__init__(str(folder))
        self._after, self._changes = after, 0

    def write(self, path, content):
        super().write(path, content)
        self._tell()

    def remove(self, path):
        super().remove(path)
        self._tell()

    def _tell(self):
        self._changes += 1
        self._after(self._changes)


def test_readers_at_any_moment_see_days_as_they_were_or_as_they_are(exports, tmp_path) -> None:
    """But for the moment between checkpoint and list, in which the list alone is what it was."""
    settings, lake, folder = exports
    copy = shutil.copytree(folder / "older", tmp_path / "copy")
    began = ExportCopy(open_place(str(copy)))
    seen_rows, refused = [], []

    def read(_):
        for reader in (began, ExportCopy(open_place(str(copy)))):
            try:
                seen_rows.append(verify(reader, table_of, key=public_key()).rows[NETWORK])
            except DamagedCopyError as error:
                refused.append(str(error))
        days = [(one["table"], one["date"]) for one in listed(copy)]
        assert len(days) == len(set(days))
        assert all((copy / one["path"]).is_file() for one in listed(copy))

    export(settings, lake, _Watched(copy, read))
    assert len(seen_rows) > 20
    assert ["files.json" in why and "an export that goes on" in why for why in refused] == [True, True]
    assert list(dict.fromkeys(seen_rows)) == [300 + 40 + 2 * 2, 700 + 40 + 5 + 2 * 3]


def test_an_export_that_was_interrupted_is_completed_and_leaves_no_file_behind(exports, tmp_path) -> None:
    """After a data file, the list of retired files, the checkpoint, the list of files, or before the end."""
    settings, lake, folder = exports
    changes = []
    export(settings, lake, _Watched(shutil.copytree(folder / "older", tmp_path / "whole"), changes.append))
    former = {one["path"] for one in listed(folder / "older")}
    end = len(changes)
    for last in (1, end - 5, end - 4, end - 3, end - 1):

        def interrupt(change, last=last):
            if change == last:
                raise KeyboardInterrupt

        copy = shutil.copytree(folder / "older", tmp_path / f"after {last} changes")
        with pytest.raises(KeyboardInterrupt):
            export(settings, lake, _Watched(copy, interrupt))
        export(settings, lake, copy)
        now = {one["path"] for one in listed(copy)}
        assert now <= data_files(copy) <= now | former, last
        export(settings, lake, copy)
        assert data_files(copy) == now, last
    checked(copy)


def test_lists_at_the_target_make_an_exporter_remove_nothing_but_data_files(exports, copy) -> None:
    """Others may write there: a host, or who keeps the bucket."""
    settings, lake, _ = exports
    kept = copy.parent / "kept"
    kept.touch()
    (copy / "retired.json").write_text(json.dumps(["../kept", "log/key", "data/../../kept", 7, None]))
    lies = [{"path": "../kept"}, {"path": ["x"], "bytes": 1, "sha256": ""}, {"path": "log/key"}, 7]
    (copy / "files.json").write_text(json.dumps([*lies, *({**one, "rows": 0} for one in listed(copy))]))
    for _ in range(2):
        assert export(settings, lake, copy).written == 0
    assert kept.is_file()
    assert checked(copy).rows == {NETWORK: sum(one["rows"] for one in listed(copy))}
    assert (copy / "log" / "key").is_file()
    for damaged in (b"[" * 100_000, b"{}", b"\xff"):
        (copy / "files.json").write_bytes(damaged)
        (copy / "retired.json").write_bytes(damaged)
        assert export(settings, lake, copy).written == 9
    place = FolderPlace(str(copy))
    for work in (place.remove, lambda path: place.write(path, b"")):
        with pytest.raises(PermalakeError, match="leads out of it"):
            work("../kept")


def data_files(copy):
    return {str(path.relative_to(copy)) for path in copy.rglob("*.parquet")}


def listed(copy):
    return json.loads((copy / "files.json").read_text())


def test_the_lines_of_the_readme_read_a_table_here_and_over_http(copy, monkeypatch, extended_duckdb) -> None:
    """Over HTTP by a DuckDB with its extension httpfs; the server knows no ranges of bytes."""
    monkeypatch.chdir(copy)
    text = (copy / "README.md").read_text()
    lines = text.split("```sql\n")[1].split("```")[0]
    with duckdb.connect() as connection:
        rows = [connection.sql(one) for one in lines.split(";\n") if one.strip()][-1].fetchall()
    assert len(rows) == 3
    assert all(name in text for name in UNSIGNED), "what is not here is said"
    with web_server(copy) as (url, asked):
        told = extended_duckdb.answer(lines.replace("'./", f"'{url}/"))
    assert [[str(value) for value in row] for row in told["rows"]] == [list(map(str, row)) for row in rows]
    assert "/files.json" in set(asked)


def test_croissant_names_every_table(copy) -> None:
    described = json.loads((copy / "croissant.json").read_text())
    assert [one["name"] for one in described["distribution"]] == [
        f"{NETWORK}.{name}" for name in ("date_cache", "messages", "ms_analytics")
    ]


def test_a_log_that_was_rolled_back_or_forked_is_noticed(exports, home, copy, tmp_path) -> None:
    checked(copy)
    with pytest.raises(PermalakeError, match="older than one that this machine saw"):
        checked(exports[2] / "older")
    log = log_of(exports[0])
    fork = FolderPlace(str(shutil.copytree(copy, tmp_path / "fork")))
    others = list(reversed(log.entries))
    append(fork, "log", None, others, key=keys.signing_key(), origin=log.checkpoint.origin)
    with pytest.raises(PermalakeError, match="forked"):
        checked(tmp_path / "fork")


class _TwoFaced(FolderPlace):
    """A copy that first shows another checkpoint: as it is, that of a log that nobody has seen."""

    def __init__(self, folder, first=b"example.org/unseen\n1\n"):
        super().__init__(str(folder))
        self._first = [first]

    def read(self, path, *limit):
        return self._first.pop() if path == "log/checkpoint" and self._first else super().read(path, *limit)


def test_a_host_that_shows_two_checkpoints_neither_rolls_back_nor_replaces_the_key(
    exports, copy, tmp_path
) -> None:
    checked(copy)
    remembered = seen.FILE.read_bytes()
    with pytest.raises(PermalakeError, match=r"is of 'example\.org/unseen' at one moment"):
        verify(ExportCopy(_TwoFaced(exports[2] / "older")), table_of, key=public_key())
    log = log_of(exports[0])
    thief = SignerKey(public_key().name, Ed25519PrivateKey.generate())
    place = FolderPlace(str(shutil.copytree(copy, tmp_path / "stolen")))
    append(place, "log", None, log.entries, key=thief, origin=log.checkpoint.origin)
    with pytest.raises(PermalakeError, match="at one moment"):
        verify(ExportCopy(_TwoFaced(place.location)), table_of)
    assert seen.FILE.read_bytes() == remembered


def test_an_export_that_another_has_overtaken_does_not_go_back(exports, copy) -> None:
    """One that took long, at its beginning or its end; nor does one replace a fork."""
    settings, lake, folder = exports
    older = read_log(FolderPlace(str(folder / "older")), "log", [public_key()])
    slow = Export(lake_copy(settings, lake), older, public_key(), table_of, lambda _: True)
    (copy / "files.json").write_bytes((folder / "older" / "files.json").read_bytes())
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    for target in (FolderPlace(str(copy)), _TwoFaced(copy, older.note)):
        with pytest.raises(PermalakeError, match="another export went further"):
            slow.write(target)
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before
    log = log_of(settings)
    place = FolderPlace(str(copy))
    append(place, "log", None, log.entries[::-1], key=keys.signing_key(), origin=log.checkpoint.origin)
    with pytest.raises(PermalakeError, match="other entries than the lake's"):
        export(settings, lake, copy)


def test_an_export_that_is_overtaken_while_it_writes_does_not_take_the_checkpoint_back(
    exports, tmp_path
) -> None:
    """Nor the list of files: another export goes further right before either."""
    settings, lake, folder = exports
    older = read_log(FolderPlace(str(folder / "older")), "log", [public_key()])
    slow = Export(lake_copy(settings, lake), older, public_key(), table_of, lambda _: True)
    for moment in ("retired.json", "log/checkpoint"):
        copy = shutil.copytree(folder / "older", tmp_path / moment)

        class Overtaken(FolderPlace):
            def write(self, path, content, copy=copy, moment=moment):
                super().write(path, content)
                if path == moment:
                    export(settings, lake, copy)

        with pytest.raises(PermalakeError, match="another export went further"):
            slow.write(Overtaken(str(copy)))
        assert checked(copy).days == {NETWORK: 3}, moment


def test_what_another_check_saw_meanwhile_is_kept_and_compared(exports, copy, tmp_path) -> None:
    """Of checks that began when nothing had been seen."""
    log = log_of(exports[0])
    fork = FolderPlace(str(shutil.copytree(copy, tmp_path / "fork")))
    append(fork, "log", None, log.entries[::-1], key=keys.signing_key(), origin=log.checkpoint.origin)
    newer, older, forked = (
        open_checked(ExportCopy(open_place(str(place))), public_key())
        for place in (copy, exports[2] / "older", tmp_path / "fork")
    )
    seen.remember(newer.log, newer.key, "2100-01-01T00:00:00Z", "here")
    remembered = seen.FILE.read_bytes()
    seen.remember(older.log, older.key, "2100-01-01T00:00:01Z", "here")
    with pytest.raises(PermalakeError, match="forked"):
        seen.remember(forked.log, forked.key, "2100-01-01T00:00:02Z", "here")
    assert seen.FILE.read_bytes() == remembered


def test_a_host_does_not_replace_a_log_that_was_checked_there_by_its_own(exports, copy, tmp_path) -> None:
    """Though nobody names a key, and its log has a name that nobody has seen."""
    verify(ExportCopy(open_place(str(copy))), table_of)
    log = log_of(exports[0])
    lake_id = log.checkpoint.origin.rpartition("/")[2]
    thief = SignerKey("other.org/x", Ed25519PrivateKey.generate())
    append(FolderPlace(str(copy)), "log", None, log.entries, key=thief, origin=f"other.org/x/{lake_id}")
    assert (copy / "log" / "key").read_text() == f"{thief.verifier}\n"
    with pytest.raises(PermalakeError, match=f"{copy} shows the log .other.* and showed {NAME}/.*by --key"):
        verify(ExportCopy(open_place(str(copy))), table_of)
    assert checked(copy, thief.verifier).days == {NETWORK: 3}
    assert verify(ExportCopy(open_place(str(copy))), table_of).key == thief.verifier
    elsewhere = shutil.copytree(exports[2] / "newer", tmp_path / "elsewhere")
    assert verify(ExportCopy(open_place(str(elsewhere))), table_of).key == public_key()


def test_logs_that_were_seen_before_places_were_kept_count_as_they_did(copy) -> None:
    checked(copy)
    logs = json.loads(seen.FILE.read_text())
    for kept in logs.values():
        assert kept.pop("places") == [str(copy)]
    seen.FILE.write_text(json.dumps(logs))
    assert "too" in verify(ExportCopy(open_place(str(copy))), table_of).trust
    assert [kept.places for kept in seen.seen_logs().values()] == [(str(copy),)]


def test_days_that_were_signed_before_a_column_came_are_checked_and_exported(exports, copy, tmp_path) -> None:
    settings, lake, _ = exports

    def later(network, name, *, required=False):
        table = table_of(network, name)
        return grown(table, required=required) if name == "messages" else table

    for place in (ExportCopy(open_place(str(copy))), lake_copy(settings, lake)):
        assert verify(place, later, key=public_key()).days == {NETWORK: 3}
    work = Export(lake_copy(settings, lake), log_of(settings), public_key(), later, lambda _: True)
    work.write(FolderPlace(str(tmp_path / "new")))
    assert checked(tmp_path / "new").days == {NETWORK: 3}
    with pytest.raises(PermalakeError, match="has the columns of another version of Permalake"):
        verify(ExportCopy(open_place(str(copy))), partial(later, required=True), key=public_key())


def test_a_correct_export_that_another_key_signed_is_refused(exports, copy, tmp_path, monkeypatch) -> None:
    mine = public_key()
    at_home(monkeypatch, tmp_path / "thief")
    keys.create_key(NAME)
    stolen = settings_of(tmp_path / "stolen")
    thief = OpenLake(stolen)
    build(stolen, thief, DAY1, 1, 700, "copied")
    sign(stolen, thief)
    export(stolen, thief, tmp_path / "export")
    with pytest.raises(PermalakeError, match="another key"):
        checked(tmp_path / "export", mine)


def test_without_a_key_that_of_the_copy_is_taken_once_and_kept(exports, copy) -> None:
    first = verify(ExportCopy(open_place(str(copy))), table_of)
    assert "compare it" in first.trust
    (copy / "log" / "key").write_text(f"{keys.create_key.__name__}\n")
    assert "compare it" not in verify(ExportCopy(open_place(str(copy))), table_of).trust
