"""``permalake keys``, ``export`` and ``verify`` as a user calls them."""

from __future__ import annotations

import re
from functools import partial
from types import SimpleNamespace

import pytest

from permalake.cli.main import main
from permalake.transparency import keys, signing
from support.lakes import DAY1, DAY2, DAY3, OpenLake, build, settings_of
from support.signed_lakes import NAME, at_home


def two_days(warehouse):
    """Publish two days into a lake; return its warehouse."""
    settings = settings_of(warehouse)
    lake = OpenLake(settings)
    for at, day in enumerate((DAY1, DAY2)):
        build(settings, lake, day, at + 1, 3, f"run-{at}")
    return warehouse


@pytest.fixture(scope="module")
def unsigned(tmp_path_factory):
    """The warehouse of a lake with two days, for tests that write nothing."""
    return two_days(tmp_path_factory.mktemp("unsigned") / "warehouse")


@pytest.fixture
def command_line(tmp_path, monkeypatch, capsys):
    """Call the command line on the lake in a warehouse; return exit code and both outputs."""
    at_home(monkeypatch, tmp_path / "home")
    config = tmp_path / "permalake.toml"
    monkeypatch.setenv("PERMALAKE_CONFIG", str(config))

    def call(warehouse, *arguments):
        config.write_text(f'[lake]\nwarehouse = "{warehouse}"\n')
        with pytest.raises(SystemExit) as ended:
            main([str(one) for one in arguments])
        told = capsys.readouterr()
        return ended.value.code or 0, told.out, told.err

    return call


@pytest.fixture
def called(command_line, tmp_path):
    """Call the command line on a lake of the test's own."""
    return partial(command_line, two_days(tmp_path / "warehouse"))


def test_a_lake_is_signed_exported_and_checked(called, tmp_path) -> None:
    code, key, remarks = called("keys", "create", "--name", NAME)
    assert code == 0
    assert "2 published days signed" in remarks
    assert called("keys", "show") == (0, key, "")
    target = tmp_path / "export"
    assert (
        called("export", target)[1]
        == f"{target}: 2 days; 6 files written ({_bytes(target):,} bytes), 0 left as they were\n"
    )
    for source in ([], [target, "--key", key]):
        code, said, _ = called("verify", *source)
        assert code == 0
        assert re.match(rf"{NAME}/[0-9a-f-]{{36}}: 2 days are as their publisher signed them\.\n", said)
        assert "  shimmer: 2 days, 10 rows: each row is as it was signed, none is missing" in said
        assert "none was added (6 tables compared)" in said
    assert "1 days" not in called("verify", target, "--date", DAY1, "--network", "shimmer")[1].splitlines()[1]


def test_an_export_that_follows_writes_what_is_published_meanwhile(called, tmp_path, monkeypatch) -> None:
    called("keys", "create", "--name", NAME)
    target, settings = tmp_path / "export", settings_of(tmp_path / "warehouse")
    pauses = []

    def pause(seconds):
        pauses.append(seconds)
        if len(pauses) == 1:
            build(settings, OpenLake(settings), DAY3, 3, 5, "meanwhile")
        elif len(pauses) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("permalake.cli.export.time", SimpleNamespace(sleep=pause))
    code, said, _ = called("export", target, "--follow")
    assert code != 0
    days = [re.search(r": (\d days); (\d files written)", line).groups() for line in said.splitlines()]
    assert days == [("2 days", "6 files written"), ("3 days", "3 files written")]
    assert "shimmer: 3 days, 17 rows" in called("verify", target)[1]


@pytest.mark.parametrize("command", [["verify"], ["export", "target"]])
def test_a_lake_that_is_published_to_meanwhile_is_not_accused(called, tmp_path, monkeypatch, command) -> None:
    """A day is corrected after it was signed, before the lake is read."""
    called("keys", "create", "--name", NAME)
    monkeypatch.chdir(tmp_path)
    settings, sign_all, corrected = settings_of(tmp_path / "warehouse"), signing.sign_all, []

    def overtaken(*arguments):
        entries = sign_all(*arguments)
        if not corrected:
            corrected.append(True)
            build(settings, OpenLake(settings), DAY1, 1, 5, "meanwhile")
        return entries

    monkeypatch.setattr(signing, "sign_all", overtaken)
    code, said, reason = called(*command)
    assert (code, reason) == (0, ""), said
    assert corrected


def test_an_export_that_follows_says_what_is_wrong_and_goes_on(called, tmp_path, monkeypatch) -> None:
    called("keys", "create", "--name", NAME)
    checkpoint = tmp_path / "warehouse" / "_log" / "checkpoint"
    note, pauses = checkpoint.read_bytes(), []

    def pause(_):
        pauses.append(True)
        if len(pauses) == 1:
            checkpoint.write_bytes(b"damaged")
        elif len(pauses) == 2:
            checkpoint.write_bytes(note)
            settings = settings_of(tmp_path / "warehouse")
            build(settings, OpenLake(settings), DAY3, 3, 5, "meanwhile")
        else:
            raise KeyboardInterrupt

    monkeypatch.setattr("permalake.cli.export.time", SimpleNamespace(sleep=pause))
    _, said, reasons = called("export", tmp_path / "export", "--follow")
    assert [re.search(r": (\d days)", line).group(1) for line in said.splitlines()] == ["2 days", "3 days"]
    assert reasons.splitlines()[0] == "permalake: the note has no signature"


def _bytes(target):
    return sum(file.stat().st_size for file in target.rglob("*.parquet"))


def test_the_first_difference_is_one_line_with_exit_code_1(called, tmp_path) -> None:
    called("keys", "create", "--name", NAME)
    target = tmp_path / "export"
    called("export", target)
    file = next(target.glob("data/*/messages/*.parquet"))
    file.write_bytes(file.read_bytes()[:-9])
    code, _, reason = called("verify", target)
    assert code == 1
    assert reason == f"permalake: {file} is damaged: not what files.json lists\n"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["keys", "show"], "permalake keys create"),
        (["export", "somewhere"], "permalake keys create"),
        (["verify"], "permalake keys create"),
        (["verify", "/nowhere/at/all"], "no export of"),
        (["verify", "http://127.0.0.1:9/none"], "cannot be read"),
        (["verify", "--to", "2022-09-28"], "--to is the last day"),
        (["verify", "--key", "nonsense"], "is no key"),
        (["keys", "create", "--name", "two words"], "--name"),
    ],
)
def test_what_cannot_be_done_is_said_on_one_line(command_line, unsigned, arguments, reason) -> None:
    code, _, said = command_line(unsigned, *arguments)
    assert code in (1, 2)
    assert said.count("\n") == 1
    assert reason in said


def test_no_key_is_made_where_another_one_signs(called, monkeypatch, tmp_path) -> None:
    called("keys", "create", "--name", NAME)
    monkeypatch.setenv(keys.VARIABLE, keys.KEY_FILE.read_text())
    monkeypatch.setattr(keys, "KEY_FILE", tmp_path / "other" / "log.key")
    code, key, reason = called("keys", "create", "--name", "example.org/another")
    assert (code, key) == (2, "")
    assert "PERMALAKE_SIGNING_KEY holds the key that signs here; unset it first" in reason
    assert not keys.KEY_FILE.exists()


def test_a_day_that_is_not_there_is_said(called) -> None:
    called("keys", "create", "--name", NAME)
    assert "no day of the log" in called("verify", "--date", "1999-01-01")[2]
    assert keys.KEY_FILE.exists()


def test_an_exported_part_says_how_it_is_checked(called, tmp_path) -> None:
    called("keys", "create", "--name", NAME)
    target = tmp_path / "part"
    assert ": 1 day; " in called("export", target, "--date", DAY1)[1]
    assert f"`permalake verify . --date {DAY1}`" in (target / "README.md").read_text()
    code, said, _ = called("verify", target, "--date", DAY1)
    assert code == 0
    assert ": 1 day is as its publisher signed it." in said
    code, _, reason = called("verify", target)
    assert code == 1
    assert "--network, --date, --to" in reason
