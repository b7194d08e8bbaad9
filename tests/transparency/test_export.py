"""Exports of a small lake: copied over plain HTTP and checked; whatever is changed in them is named."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import duckdb
import pytest

from permalake.errors import PermalakeError
from permalake.paths import ROOT
from permalake.transparency import keys, seen
from permalake.transparency.copies import ExportCopy
from permalake.transparency.log import append
from permalake.transparency.places import FolderPlace, open_place
from permalake.transparency.verify import verify
from support.lakes import DAY1, DAY2, DAY3, NETWORK, OpenLake, build, settings_of
from support.signed_lakes import NAME, at_home, export, log_of, public_key, sign, table_of

MANIPULATIONS = 200


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextmanager
def web_server(folder):
    """What ``python -m http.server`` does, in a thread."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("home")
        at_home(patch, folder)
        keys.create_key(NAME)
        yield folder


@pytest.fixture(scope="module")
def exports(home, tmp_path_factory):
    """A lake after two publications, exported after each: the first day was corrected, a third one added."""
    folder = tmp_path_factory.mktemp("lake")
    settings = settings_of(folder / "warehouse")
    lake = OpenLake(settings)
    build(settings, lake, DAY1, 1, 300, "first")
    build(settings, lake, DAY2, 2, 40, "second")
    sign(settings, lake)
    export(settings, lake, folder / "older")
    build(settings, lake, DAY1, 1, 700, "corrected")
    build(settings, lake, DAY3, 3, 5, "third")
    sign(settings, lake)
    shutil.copytree(folder / "older", folder / "newer")
    export(settings, lake, folder / "newer")
    return settings, lake, folder


@pytest.fixture(autouse=True)
def forgotten(home):
    """Each test sees the log for the first time."""
    seen.FILE.unlink(missing_ok=True)


@pytest.fixture
def copy(exports, tmp_path):
    return shutil.copytree(exports[2] / "newer", tmp_path / "copy")


def checked(place, key=None):
    return verify(ExportCopy(open_place(str(place))), table_of, key=key or public_key())


def test_a_copy_is_checked_over_http_and_in_a_folder(copy):
    with web_server(copy) as url:
        results = [checked(url), checked(copy)]
    for result in results:
        assert result.days == {NETWORK: 3}
        assert result.rows == {NETWORK: 700 + 40 + 5 + 2 * 3}


def test_the_second_verifier_agrees_and_names_what_is_wrong(copy):
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


def test_the_second_verifier_is_short_and_imports_nothing_of_ours():
    text = (ROOT / "docs" / "verify.py").read_text()
    assert len(text.splitlines()) <= 200
    assert "permalake" not in [
        line.split()[1].split(".")[0] for line in text.splitlines() if "import " in line
    ]


def test_only_what_changed_is_written_and_old_files_go_one_export_later(exports, copy):
    settings, lake, folder = exports
    before = set((folder / "older").rglob("*.parquet"))
    after = {path.relative_to(copy) for path in copy.rglob("*.parquet")}
    assert {path.relative_to(folder / "older") for path in before} < after
    again = export(settings, lake, copy)
    assert (again.days, again.written) == (3, 0)
    left = {path.relative_to(copy) for path in copy.rglob("*.parquet")}
    assert left == {path for path in after if str(path) in {one["path"] for one in listed(copy)}}
    checked(copy)


def listed(copy):
    return json.loads((copy / "files.json").read_text())


def test_the_lines_of_the_readme_read_a_table(copy, monkeypatch):
    monkeypatch.chdir(copy)
    text = (copy / "README.md").read_text()
    statements = text.split("```sql\n")[1].split("```")[0].split(";\n")
    with duckdb.connect() as connection:
        rows = [connection.sql(one) for one in statements if one.strip()][-1].fetchall()
    assert len(rows) == 3


def test_croissant_names_every_table(copy):
    described = json.loads((copy / "croissant.json").read_text())
    assert [one["name"] for one in described["distribution"]] == [
        f"{NETWORK}.{name}" for name in ("date_cache", "messages", "ms_analytics")
    ]


def test_a_log_that_was_rolled_back_or_forked_is_noticed(exports, home, copy, tmp_path):
    checked(copy)
    with pytest.raises(PermalakeError, match="older than one that this machine saw"):
        checked(exports[2] / "older")
    log = log_of(exports[0])
    fork = FolderPlace(str(shutil.copytree(copy, tmp_path / "fork")))
    others = list(reversed(log.entries))
    append(fork, "log", None, others, key=keys.signing_key(), origin=log.checkpoint.origin)
    with pytest.raises(PermalakeError, match="forked"):
        checked(tmp_path / "fork")


def test_a_correct_export_that_another_key_signed_is_refused(exports, copy, tmp_path, monkeypatch):
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


def test_without_a_key_that_of_the_copy_is_taken_once_and_kept(exports, copy):
    first = verify(ExportCopy(open_place(str(copy))), table_of)
    assert "compare it" in first.trust
    (copy / "log" / "key").write_text(f"{keys.create_key.__name__}\n")
    assert "compare it" not in verify(ExportCopy(open_place(str(copy))), table_of).trust


def _flip(copy, files, chance):
    file = chance.choice(files)
    content = bytearray(file.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    file.write_bytes(content)


def _truncate(copy, files, chance):
    file = chance.choice(files)
    file.write_bytes(file.read_bytes()[: chance.randrange(file.stat().st_size)])


def _remove(copy, files, chance):
    chance.choice(files).unlink()


def _swap(copy, files, chance):
    """Put the rows of one day in place of another day's, and list them as if they belonged there."""
    one, other = chance.sample([file for file in files if file.suffix == ".parquet"], 2)
    one.write_bytes(other.read_bytes())
    sizes = {entry["path"]: entry for entry in listed(copy)}
    there, here = (str(file.relative_to(copy)) for file in (other, one))
    sizes[here] = {**sizes[here], "bytes": sizes[there]["bytes"], "sha256": sizes[there]["sha256"]}
    (copy / "files.json").write_text(json.dumps(list(sizes.values())))


def _older(copy, files, chance):
    """Put back a file of the older export that differs now: its checkpoint with later tiles, or a tile."""
    older = copy.parent / "older"
    names = [file.relative_to(copy) for file in files if (older / file.relative_to(copy)).exists()]
    changed = [name for name in names if (older / name).read_bytes() != (copy / name).read_bytes()]
    (copy / chance.choice(changed)).write_bytes((older / changed[0]).read_bytes())


@pytest.fixture(scope="module")
def trials(exports, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trials")
    shutil.copytree(exports[2] / "older", folder / "older")
    return folder


@pytest.mark.parametrize("seed", range(MANIPULATIONS))
def test_whatever_is_changed_in_a_copy_is_refused(exports, trials, seed):
    chance = random.Random(seed)
    checked(exports[2] / "newer")  # so that going back is noticed, too
    copy = shutil.copytree(exports[2] / "newer", trials / "copy")
    try:
        counted = {one["path"] for one in listed(copy)}
        retired = set(json.loads((copy / "retired.json").read_text()))
        files = sorted(
            file
            for file in copy.rglob("*")
            if file.is_file()
            and (str(file.relative_to(copy)) in counted or "log" in file.relative_to(copy).parts)
            and str(file.relative_to(copy)) not in retired
            and file.name != "key"
            and not _superseded(file, copy)
        )
        manipulate = chance.choice([_flip, _flip, _truncate, _remove, _swap, _older])
        manipulate(copy, files, chance)
        with pytest.raises(PermalakeError) as refused:
            checked(copy)
        assert "\n" not in str(refused.value)
    finally:
        shutil.rmtree(copy)


def _superseded(file, copy):
    """Whether a tile is a partial one of a smaller log, which nobody reads any more."""
    return file.parent.suffix == ".p" and int(file.name) < max(int(one.name) for one in file.parent.iterdir())
