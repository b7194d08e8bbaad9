"""Errors of the command line: one line that says what to do, the right exit code, no trace."""

from __future__ import annotations

import subprocess
import sys

import pytest

from permalake.cli import main as cli


def call(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        cli.main(list(arguments))
    printed = capsys.readouterr()
    return ended.value.code or 0, printed.out, printed.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run"], "Missing argument"),
        (["run", "iota"], "Missing option '--date'"),
        (["run", "bitcoin", "--date", "2022-09-28"], "choose one of iota, wormhole"),
        (["run", "iota", "--date", "2022-9-28"], "YYYY-MM-DD"),
        (["run", "iota", "--date", "2022-09-28", "--to", "2022-09-27"], "swap the two days"),
        (["run", "iota", "--date", "2022-09-28", "--only", "enrich"], "ingest, decode, analytics, audit"),
        (["run", "iota", "--date", "2022-09-28", "--config", "nowhere.toml"], "no such configuration file"),
        (["run", "iota", "--date", "2022-09-28", "--fast"], "No such option"),
        (["bake"], "No such command 'bake'"),
    ],
)
def test_wrong_usage_is_one_line_and_code_2(capsys, arguments, said) -> None:
    code, out, err = call(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert err.startswith("permalake: ")
    assert err.count("\n") == 1
    assert said in err


def test_several_networks_are_listed(capsys, config) -> None:
    code, _, err = call(capsys, "run", "iota", "--date", "2022-09-28", "--config", str(config))
    assert code == 2
    assert "shimmer, testnet" in err


@pytest.mark.parametrize("command", list(cli.COMMANDS))
def test_every_command_has_a_help_with_examples_and_takes_a_configuration(capsys, command) -> None:
    code, out, _ = call(capsys, command, "--help")
    assert code == 0
    assert f"permalake {command}" in out


def test_help_teaches_and_no_arguments_show_it(capsys) -> None:
    code, out, _ = call(capsys, "--help")
    assert code == 0
    assert "permalake run iota --date 2022-09-28" in out
    for command in cli.COMMANDS:
        assert f"  {command} " in out
    assert call(capsys)[:2] == (2, out)


def test_an_unforeseen_error_has_no_trace_unless_asked_for(capsys, monkeypatch, config) -> None:
    def broken(*_):
        raise RuntimeError("disk on fire")

    monkeypatch.setattr("permalake.cli.run.load_settings", broken)
    monkeypatch.delenv(cli.DEBUG, raising=False)
    code, _, err = call(capsys, "run", "iota", "--date", "2022-09-28")
    assert code == 1
    assert err == f"permalake: RuntimeError: disk on fire (set {cli.DEBUG}=1 for the trace)\n"
    monkeypatch.setenv(cli.DEBUG, "1")
    code, _, err = call(capsys, "run", "iota", "--date", "2022-09-28")
    assert code == 1
    assert "Traceback" in err
    assert "in broken" in err


def test_help_loads_nothing_heavy() -> None:
    heavy = "{'airflow', 'pyspark', 'pyiceberg', 'duckdb', 'pandas', 'pyarrow'}"
    code = (
        "import sys; from permalake.cli import main as cli\n"
        "try: cli.main(['--help'])\n"
        f"except SystemExit: sys.exit(bool({heavy} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_a_catalog_that_does_not_answer_is_one_line(capsys, monkeypatch, config) -> None:
    monkeypatch.setenv("PERMALAKE_LAKE__CATALOG", "postgresql+psycopg2://me:t0psecret@127.0.0.1:1/lake")
    code, _, err = call(capsys, "status")
    assert code == 1
    assert err.startswith("permalake: lake.catalog: the database does not answer: ")
    assert err.endswith("; are address and login right?\n")
    assert err.count("\n") == 1
    assert "t0psecret" not in err
