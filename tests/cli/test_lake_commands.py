"""`permalake query`, `status` and `quarantine` as a user calls them."""

from __future__ import annotations

import io
import json
import re
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from permalake.cli import main as front
from permalake.cli.render import write
from permalake.config import load_settings
from permalake.contracts import QUARANTINE
from permalake.contracts.steps import StepResult
from permalake.errors import PermalakeError
from permalake.lake.catalog import open_catalog
from permalake.lake.identity import open_database
from permalake.lake.step_ledger import StepLedger
from support.lakes import DAY1, DAY2, DAY3, OpenLake, build

TOML = """
[lake]
warehouse = "warehouse"
[networks.shimmer]
protocol = "stardust"
bech32_hrp = "smr"
path = "archive"
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    folder = tmp_path_factory.mktemp("commands")
    file = folder / "permalake.toml"
    file.write_text(TOML, "utf-8")
    settings = load_settings(file)
    lake = OpenLake(settings)
    build(settings, lake, DAY1, 17339, 3, "run")
    rows = [
        {
            "source": "archive_rest",
            "origin": f"blocks.jsonl:{number}",
            "reason": "malformed" if number < 3 else "bad_signature",
            "detail": None,
            "raw": bytes([number, 255]),
            "seen_at": datetime(2022, 10, 1, 12, 0, 0, 250000 * number, tzinfo=UTC),
            "date": day,
        }
        for number, day in ((1, DAY1), (2, DAY2), (3, DAY3))
    ]
    table = open_catalog(settings, "permalake").load_table(("shimmer", "quarantine"))
    table.append(pa.Table.from_pylist(rows, schema=QUARANTINE.arrow))
    return str(file)


@pytest.fixture
def permalake(config, capsys):
    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            front.main([*arguments, "--config", config])
        printed = capsys.readouterr()
        return int(end.value.code or 0), printed.out, printed.err

    return call


def asked(permalake, sql: str):
    code, out, err = permalake("query", sql, "--format", "json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_every_type_as_json(permalake) -> None:
    """Integers of any width are numbers, decimals text, binary hex, times RFC 3339."""
    (row,) = asked(
        permalake,
        "select 9007199254740993::bigint i, 18446744073709551615::ubigint u, "
        "sum(9223372036854775807::bigint) over (rows 1 preceding) h, 1.50::decimal(38,8) d, "
        "0::decimal(38,8) z, '\\x00\\xAB'::blob b, date '2022-09-28' as dt, "
        "timestamptz '2022-09-28 12:00:00+02' t, timestamp '2022-09-28 01:02:03.25' f, 2.5::double x, "
        "'nan'::double nan, null n, [1, null]::bigint[] l, ['\\xFF'::blob] lb, "
        "{'a': 1.5, 'h': 1::hugeint} s, map(['k'], [1]) m, true yes, 'ü\"' txt",
    )
    assert row == {
        "i": 9007199254740993,
        "u": 18446744073709551615,
        "h": 9223372036854775807,
        "d": "1.50000000",
        "z": "0.00000000",
        "b": "00ab",
        "dt": "2022-09-28",
        "t": "2022-09-28T10:00:00Z",
        "f": "2022-09-28T01:02:03.25Z",
        "x": 2.5,
        "nan": None,
        "n": None,
        "l": [1, None],
        "lb": ["ff"],
        "s": {"a": "1.5", "h": 1},
        "m": {"k": 1},
        "yes": True,
        "txt": 'ü"',
    }


def test_a_sum_beyond_64_bits_is_a_number(permalake) -> None:
    _, out, _ = permalake(
        "query",
        "select sum(x) s from (values (9223372036854775807), (9223372036854775807)) t(x)",
        "--format",
        "json",
    )
    assert out == '[{"s": 18446744073709551614}]\n'


def test_rows_of_the_lake_in_every_format(permalake) -> None:
    sql = "select milestone_index, message_count, date from shimmer.ms_analytics"
    expected = {"milestone_index": 17339, "message_count": 3, "date": "2022-09-28"}
    assert asked(permalake, sql) == [expected]
    assert permalake("query", sql, "--format", "csv")[1] == (
        "milestone_index,message_count,date\n17339,3,2022-09-28\n"
    )
    screen = permalake("query", sql)[1]
    assert all(str(value) in screen for value in (*expected, *expected.values()))
    assert asked(permalake, "select * from shimmer.tags") == []


def test_csv_quotes_and_leaves_nulls_empty(permalake) -> None:
    sql = "select 'a,\"b' x, null y, [1, 2] z"
    assert permalake("query", sql, "--format", "csv")[1] == 'x,y,z\n"a,""b",,"[1, 2]"\n'


def test_a_screen_shows_what_fits_and_says_so(permalake) -> None:
    code, out, err = permalake("query", "select repeat('x', 100) t, i from range(1500) r(i)")
    assert code == 0
    assert "x" * 91 not in out
    assert "(100 characters)" in out
    assert err == "1500 rows, the first 1000 shown; --format json or csv gives all\n"


HOSTILE = "select chr(27) || '[31m' || chr(8238) || chr(155) as \"a\tb\", '=1+1' f, -1.5 d, '-x' m, '@' a"


def test_what_a_terminal_would_obey_is_marked(permalake) -> None:
    table = permalake("query", HOSTILE)[1]
    assert "[U+001B][31m[U+202E][U+009B]" in table
    assert not {"\x1b", "\u202e", "\x9b"} & set(table)
    error = permalake("query", 'select * from "\x1b[31m"')[2]
    assert "[U+001B]" in error
    assert "\x1b" not in error


def test_files_have_the_exact_values(permalake) -> None:
    assert asked(permalake, HOSTILE)[0]["a\tb"] == "\x1b[31m\u202e\x9b"
    assert permalake("query", HOSTILE, "--format", "csv")[1].splitlines()[1] == (
        "\x1b[31m\u202e\x9b,=1+1,-1.5,-x,@"
    )


def test_a_spreadsheet_takes_nothing_for_a_formula(permalake) -> None:
    assert permalake("query", HOSTILE, "--format", "sheet")[1].splitlines()[1] == (
        "\x1b[31m\u202e\x9b,'=1+1,-1.5,'-x,'@"
    )


@pytest.mark.parametrize("form", ["json", "csv"])
def test_a_terminal_shows_json_of_the_same_values(form) -> None:
    screen = io.StringIO()
    screen.isatty = lambda: True  # type: ignore[method-assign]
    value = "\x1b[31m\u202e\x9b\U000e0001ü"
    write([{"a": value}], ["a"], form, screen, io.StringIO())
    assert not {"\x1b", "\u202e", "\x9b", "\U000e0001"} & set(screen.getvalue())
    if form == "json":
        assert json.loads(screen.getvalue()) == [{"a": value}]


def test_as_of_before_anything_was_published_is_empty(permalake) -> None:
    sql = "select count(*) n from shimmer.messages"
    earlier = permalake("query", sql, "--format", "json", "--as-of", "2020-01-01")
    assert json.loads(earlier[1]) == [{"n": 0}]
    later = permalake("query", sql, "--format", "json", "--as-of", "2999-01-01T00:00:00+02:00")
    assert json.loads(later[1]) == [{"n": 3}]


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("query", "select * from shimmer.mesages"), 1, "did you mean shimmer.messages"),
        (("query", "select 1", "--as-of", "yesterday"), 2, "--as-of yesterday: not a time"),
        (("query", "select 1", "--format", "xml"), 2, "xml"),
        (("status", "--network", "nowhere"), 2, "network nowhere: not configured"),
        (("status", "--run", "cli-1", "--failed"), 2, "--run prints one run, all of it; leave out --failed"),
        (("status", "--run", "cli-1", "--date", "2022-09-28"), 2, "leave out --failed, --runs, --date"),
        (("quarantine", "list", "--date", "28.9.2022"), 2, "--date 28.9.2022: not a date"),
        (("quarantine", "show", "nothing"), 1, "nothing: nothing of that origin in quarantine"),
        (("quarantine", "retry", "--network", "nowhere"), 2, "network nowhere: not configured"),
    ],
)
def test_errors_are_one_line_and_the_exit_code_says_whose_fault(permalake, arguments, code, text) -> None:
    ended, out, err = permalake(*arguments)
    assert (ended, out) == (code, "")
    assert err.startswith("permalake: ")
    assert text in err
    assert err.count("\n") == 1


def test_status_of_the_day(permalake) -> None:
    code, out, err = permalake("status", "--network", "shimmer", "--format", "json")
    (day,) = json.loads(out)
    assert (code, err) == (0, "")
    assert (day["network"], day["date"], day["audited"]) == ("shimmer", "2022-09-28", "passed")
    assert day["rows"] == {"date_cache": 1, "messages": 3, "ms_analytics": 1}
    assert day["published"].endswith("Z")
    assert "2022-09-28" in permalake("status")[1]


def test_a_run_is_shown_step_by_step_with_the_days_that_it_published(permalake, config) -> None:
    ledger = StepLedger(open_database(load_settings(config)))
    key = ledger.start("shimmer", "cli-1", "publish", (DAY1, DAY1))
    ledger.finish(key, StepResult(days=(DAY1,), rows={"messages": 3}))
    code, out, err = permalake("status", "--run", "cli-1", "--format", "json")
    assert code == 0, err
    (row,) = json.loads(out)
    assert (row["key"]["step"], row["result"]["state"]) == ("publish", "done")
    assert (row["start"], row["result"]["days"]) == (str(DAY1), [str(DAY1)])
    assert "1 day published" in permalake("status", "--run", "cli-1")[1]
    [listed] = json.loads(permalake("status", "--runs", "--date", "2022-09-28", "--format", "json")[1])
    assert (listed["run"], listed["days"]) == ("cli-1", "2022-09-28")
    assert permalake("status", "--runs", "--date", "2001-01-01", "--format", "json")[1] == "[]\n"
    assert "cli-1" in permalake("status", "--runs")[1]


def test_the_quarantine_is_listed_filtered_and_shown(permalake) -> None:
    def listed(*arguments):
        return [
            row["origin"] for row in json.loads(permalake("quarantine", *arguments, "--format", "json")[1])
        ]

    assert listed("list") == ["blocks.jsonl:1", "blocks.jsonl:2", "blocks.jsonl:3"]
    assert listed("list", "--reason", "malformed") == ["blocks.jsonl:1", "blocks.jsonl:2"]
    assert listed("list", "--date", "2022-09-30") == ["blocks.jsonl:3"]
    assert listed("list", "--network", "wormhole") == []
    code, out, err = permalake("quarantine", "list", "--limit", "1", "--format", "csv")
    assert code == 0
    assert out.splitlines()[1] == (
        "shimmer,2022-09-28,malformed,archive_rest,blocks.jsonl:1,,2022-10-01T12:00:00.25Z"
    )
    assert err == "1 of 3 rows shown\n"
    out = permalake("quarantine", "list")[1]
    told = [line for line in out.splitlines() if "docs/runbooks/reasons.md" in line]
    assert [line.split(":")[0] for line in told] == ["bad_signature", "malformed"]
    assert told[1].endswith("; see docs/runbooks/reasons.md#malformed")
    (row,) = json.loads(permalake("quarantine", "show", "blocks.jsonl:3")[1])
    assert (row["raw"], row["reason"]) == ("03ff", "bad_signature")


def test_a_range_that_is_still_broken_does_not_keep_others_from_being_tried_again(
    permalake, monkeypatch
) -> None:
    tried = []

    def run_range(_settings, network, start, end, **_):
        tried.append((network, start, end))
        if start == DAY1:
            raise PermalakeError("blocks.jsonl:1 is still malformed")

    days = [DAY1, DAY2, DAY3 + timedelta(1)]
    monkeypatch.setattr("permalake.local.run.run_range", run_range)
    monkeypatch.setattr("permalake.lake.reader.Reader.days_with_rejected", lambda *_: days)
    code, _, err = permalake("quarantine", "retry", "--network", "shimmer")
    assert tried == [("shimmer", DAY1, DAY2), ("shimmer", days[2], days[2])]
    assert code == 1
    assert err.splitlines() == [
        "permalake: blocks.jsonl:1 is still malformed",
        f"permalake: shimmer: {DAY1}..{DAY2} not built; the reasons stand above",
    ]


def test_nothing_to_try_again(permalake) -> None:
    code, out, _ = permalake("quarantine", "retry", "--network", "shimmer", "--date", "2022-10-01")
    assert (code, out) == (0, "shimmer 2022-10-01: nothing in quarantine\n")


def test_the_shell_of_sql_lists_what_there_is(permalake) -> None:
    listed = asked(permalake, "show tables")
    assert {"network": "shimmer", "table": "messages"} in listed
    assert {"network": "shimmer", "table": "sync"} in listed
    columns = asked(permalake, "describe shimmer.messages")
    assert [row["column_name"] for row in columns][:2] == ["message_id", "version"]
    sql = "select count(*) n from information_schema.columns where table_name = 'ms_analytics'"
    assert asked(permalake, sql)[0]["n"] == 6


def test_a_listing_beside_rows_reads_the_rows(permalake) -> None:
    sql = "select count(*) n, any_value(t.table_name) from shimmer.messages, information_schema.tables t"
    assert asked(permalake, f"{sql} where t.table_name = 'tags'")[0]["n"] == 3


def test_sql_comes_from_a_file_or_standard_input(permalake, tmp_path, monkeypatch) -> None:
    file = tmp_path / "count.sql"
    file.write_text("select count(*) n\nfrom shimmer.messages;\n", "utf-8")
    assert permalake("query", "--file", str(file), "--format", "csv")[1] == "n\n3\n"
    for arguments in ((), ("-",)):
        monkeypatch.setattr("sys.stdin", io.StringIO("select 7 as n"))
        assert permalake("query", *arguments, "--format", "csv")[1] == "n\n7\n"
    code, _, err = permalake("query", "select 1", "--file", str(file))
    assert (code, "give one of them" in err) == (2, True)
    code, _, err = permalake("query", "--file", str(tmp_path / "absent.sql"))
    assert (code, "absent.sql" in err) == (2, True)


@pytest.mark.parametrize(("condition", "count"), [("true", 3), ("false", 0)])
def test_rows_go_into_a_parquet_file(permalake, tmp_path, condition, count) -> None:
    target = tmp_path / "rows.parquet"
    code, out, err = permalake(
        "query", f"select * from shimmer.messages where {condition}", "--parquet", str(target)
    )
    assert (code, out, err) == (0, "", f"{target}: {count} rows\n")
    table = pq.read_table(target)
    assert table.num_rows == count
    assert table.schema.field("milestone_index").type == "int32"
    assert list(tmp_path.iterdir()) == [target]


def test_a_parquet_file_that_cannot_be_written_is_one_line(permalake, tmp_path) -> None:
    code, _, err = permalake("query", "select 1", "--parquet", str(tmp_path / "absent" / "rows.parquet"))
    assert (code, err.count("\n"), "rows.parquet" in err) == (1, 1, True)


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_leaves_columns_out_between_the_first_and_the_last(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out, log = _Terminal(), io.StringIO()
    names = [f"column_{at}" for at in range(20)]
    write([dict.fromkeys(names, "x" * 8)], names, "table", out, log)
    lines = re.sub(r"\x1b\[\d*m", "", out.getvalue()).splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) == 5, "no row is wrapped"
    assert {"column_0", "column_19", "…"} <= set(lines[1].replace("┃", " ").split())
    assert log.getvalue() == "6 of 20 columns shown; --format json or csv gives all\n"
    pipe = io.StringIO()
    write([dict.fromkeys(names, "x")], names, "table", pipe, log)
    assert all(name in pipe.getvalue() for name in names)


def test_a_terminal_shortens_ids_before_it_leaves_columns_out(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out, log = _Terminal(), io.StringIO()
    key = f"2:{'0' * 24}{'3e' * 20}:0000000000085075"
    row = {"date": "2026-04-09", "row_key": key, "amount": "123456789012345678901", "symbol": "WETH"}
    write([row], list(row), "table", out, log)
    lines = re.sub(r"\x1b\[\d*m", "", out.getvalue()).splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) == 5, "no row is wrapped"
    cells = lines[3].replace("│", " ").split()
    assert [cells[0], *cells[2:]] == ["2026-04-09", "123456789012345678901", "WETH"]
    head, tail = cells[1].split("…")
    assert key.startswith(head)
    assert key.endswith(tail)
    assert min(len(head), len(tail)) > 8
    assert log.getvalue() == "long texts are shortened in the middle; --format json or csv gives all\n"
    pipe = io.StringIO()
    write([row], list(row), "table", pipe, log)
    assert key in pipe.getvalue()


def test_status_of_days_that_need_somebody(permalake) -> None:
    def days(*options):
        return [day["date"] for day in json.loads(permalake("status", "--format", "json", *options)[1])]

    assert days("--date", "2022-09-28") == ["2022-09-28"]
    assert days("--date", "2022-09-29", "--to", "2022-09-30") == []
    assert days("--failed") == []
    assert permalake("status", "--to", "2022-09-30")[0] == 2


def test_status_of_failed_days_lists_those_that_were_never_built(tmp_path, capsys) -> None:
    file = tmp_path / "permalake.toml"
    file.write_text(TOML, "utf-8")
    settings = load_settings(str(file))
    lake = OpenLake(settings)
    for number, days_later in enumerate((0, 2, 5), 1):
        build(settings, lake, DAY1 + timedelta(days_later), number, 1, f"run {number}")

    def status(*options):
        with pytest.raises(SystemExit):
            front.main(["status", *options, "--config", str(file)])
        return capsys.readouterr().out

    missing = [(DAY1 + timedelta(number)).isoformat() for number in (1, 3, 4)]
    listed = json.loads(status("--failed", "--format", "json"))
    assert [day["date"] for day in listed if day["error"] == "never built"] == missing
    assert [day["reasons"] for day in listed if day["date"] in missing] == [
        ["docs/runbooks/reasons.md#days_not_built"]
    ] * 3
    [first] = json.loads(status("--failed", "--date", missing[0], "--format", "json"))
    assert (first["date"], first["rows"], first["published"]) == (missing[0], {}, None)
    lines = status("--failed").splitlines()
    assert any(missing[0] in line and line.split("│")[-2].strip() == "never built" for line in lines)
    assert any(f"{missing[1]}..{missing[2]}" in line and "never built: 2 days" in line for line in lines)
    assert any(line.startswith("days_not_built: ") for line in lines)
    assert "never built: " not in status()


def test_runs_that_failed_are_listed_alone(tmp_path, capsys) -> None:
    file = tmp_path / "permalake.toml"
    file.write_text(TOML, "utf-8")
    ledger = StepLedger(open_database(load_settings(str(file))))
    for state in ("done", "invalid", "failed", "skipped"):
        key = ledger.start("shimmer", f"run-{state}", "publish", (DAY1, DAY1))
        ledger.finish(key, StepResult(state, reason="why"))
    with pytest.raises(SystemExit):
        front.main(["status", "--runs", "--failed", "--format", "json", "--config", str(file)])
    listed = json.loads(capsys.readouterr().out)
    assert {row["run"] for row in listed} == {"run-invalid", "run-failed"}


def test_status_leads_to_what_a_later_publication_changed(permalake, config) -> None:
    assert "published again" not in permalake("status")[1]
    settings = load_settings(config)
    build(settings, OpenLake(settings), DAY1, 17339, 3, "again")
    line = (
        f"shimmer: 1 day was published again, the last {DAY1}; what changed: "
        f"/quality/changes?network=shimmer&day={DAY1} of `permalake serve`"
    )
    assert permalake("status")[1].splitlines()[-1] == line
    assert "published again" not in permalake("status", "--date", DAY2)[1]
