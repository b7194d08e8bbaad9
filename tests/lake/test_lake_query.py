"""SQL over the published state: what is read, when, and what is not allowed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select, update

from permalake.domains import domain_of
from permalake.errors import ConfigError, PermalakeError
from permalake.lake import QueryLimits
from permalake.lake.catalog import open_catalog
from permalake.lake.duckdb_file import write_duckdb_file
from permalake.lake.query import run_query
from permalake.lake.state import days, moment, publications, stamp
from permalake.lake.statements import unique_names
from support.lakes import (
    DAY1,
    DAY2,
    DAY3,
    NETWORK,
    OpenLake,
    build,
    messages,
    pass_audit,
    put,
    settings_of,
    state,
)


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """Day 1 with 5 messages, then day 2 with 7, then day 1 rebuilt with 6."""
    chosen = settings_of(tmp_path_factory.mktemp("lake") / "warehouse")
    lake = OpenLake(chosen)
    done = [
        build(chosen, lake, DAY1, 1, 5, "a"),
        build(chosen, lake, DAY2, 2, 7, "b"),
        build(chosen, lake, DAY1, 1, 6, "c"),
    ]
    return lake, [moment(publication.published_at) for publication in done]


def test_as_of_reads_the_state_of_the_last_publication_at_or_before(filled) -> None:
    lake, times = filled
    count = "select count(*) n from shimmer.messages"
    told = [lake.query(count, as_of=time)["n"][0].as_py() for time in times]
    assert told == [5, 12, 13]
    assert lake.query(count, as_of=datetime(2020, 1, 1, tzinfo=UTC))["n"][0].as_py() == 0
    numbers = range(1, len(told) + 1)
    assert [lake.query(count, as_of=number)["n"][0].as_py() for number in numbers] == told
    for number in (0, len(told) + 1):
        with pytest.raises(PermalakeError, match=f"publication {number}: there is none; the last one is"):
            lake.query(count, as_of=number)
    assert lake.query(count)["n"][0].as_py() == 13


@pytest.mark.parametrize("alone", [True, False], ids=["the only one", "not the first"])
def test_a_publication_dated_2099_hides_no_other(tmp_path, alone) -> None:
    chosen = settings_of(tmp_path)
    lake = OpenLake(chosen)
    count = "select count(*) n from shimmer.messages"
    if not alone:
        build(chosen, lake, DAY2, 2, 7, "before")
    build(chosen, lake, DAY1, 1, 5, "clock ahead")
    with lake.database.write() as connection:
        last = connection.execute(select(func.max(publications.c.id))).scalar()
        for table, column in ((publications, publications.c.id), (days, days.c.publication_id)):
            connection.execute(
                update(table).where(column == last).values(published_at=stamp(datetime(2099, 1, 1)))
            )
    before = datetime.now(UTC)
    done = build(chosen, lake, DAY3, 3, 2, "after")
    assert before - timedelta(seconds=1) < moment(done.published_at) < datetime.now(UTC)
    assert lake.query(count, as_of=moment(done.published_at))["n"][0].as_py() == (7 if alone else 14)
    assert lake.query(count, as_of=before - timedelta(minutes=1))["n"][0].as_py() == 0
    assert all(day.published < "2099" for day in lake.reader.status(NETWORK))


def test_the_time_of_a_publication_never_goes_back(tmp_path) -> None:
    chosen = settings_of(tmp_path)
    lake = OpenLake(chosen)
    build(chosen, lake, DAY1, 1, 5, "a little ahead")
    ahead = datetime.now(UTC) + timedelta(minutes=10)
    with lake.database.write() as connection:
        connection.execute(update(publications).values(published_at=stamp(ahead)))
    assert build(chosen, lake, DAY2, 2, 7, "next").published_at == stamp(ahead)
    assert lake.query("select count(*) n from shimmer.messages", as_of=ahead)["n"][0].as_py() == 12


def test_sums_filters_and_empty_tables(filled) -> None:
    lake, _ = filled
    assert state(lake) == {DAY1: (6, 6), DAY2: (7, 7)}
    some = "select count(*) n from shimmer.messages where date = DATE '2022-09-29' and white_flag_index < 3"
    assert lake.query(some)["n"][0].as_py() == 3
    assert lake.query("select * from shimmer.nft_outputs").num_rows == 0
    joined = "select t.tag from shimmer.messages m left join shimmer.tags t using (message_id)"
    assert lake.query(joined).num_rows == 13


def test_a_network_with_a_dash_is_quoted(tmp_path) -> None:
    chosen = settings_of(tmp_path)
    lake = OpenLake(chosen)
    attempt = lake.begin("chrysalis-mainnet", DAY1, DAY1, "run")
    put(chosen, attempt, "messages", messages(DAY1, 1, 2))
    lake.builds.publish(pass_audit(attempt))
    assert lake.query('select * from "chrysalis-mainnet".messages').num_rows == 2
    with pytest.raises(PermalakeError, match=r'did you mean "chrysalis-mainnet"\.messages'):
        lake.query("select * from messages")


def test_a_table_made_by_an_older_contract_gains_the_new_columns(tmp_path) -> None:
    chosen = settings_of(tmp_path)
    lake = OpenLake(chosen)
    catalog = open_catalog(chosen, "permalake")
    old = pa.schema([field for field in domain_of(NETWORK).tables["messages"].arrow if field.name != "proof"])
    catalog.create_namespace(NETWORK)
    catalog.create_table((NETWORK, "messages"), schema=old).append(
        pa.Table.from_pylist(messages(DAY1, 1, 2), schema=old)
    )
    assert "proof" not in lake.query("select * from shimmer.messages").column_names
    lake.ensure(NETWORK)
    rows = lake.query("select proof, white_flag_index from shimmer.messages order by 2").to_pylist()
    assert rows == [{"proof": None, "white_flag_index": 0}, {"proof": None, "white_flag_index": 1}]
    write_duckdb_file(lake.reader.published(), domain_of, tmp_path / "lake.duckdb")
    with duckdb.connect(str(tmp_path / "lake.duckdb"), read_only=True) as tool:
        assert tool.execute("select proof, white_flag_index from shimmer.messages order by 2").fetchall() == [
            (None, 0),
            (None, 1),
        ]


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("select * from shimmer.mesages", "did you mean shimmer.messages"),
        ("select * from nowhere.messages", "did you mean shimmer.messages"),
        ("selec 1", "syntax error"),
        ("select 1; select 2", "one statement at a time; the text holds 2"),
        ("", "one statement at a time; the text holds 0"),
        ("drop table shimmer.messages", "DROP is not allowed"),
        ("create table t as select 1", "CREATE is not allowed"),
        ("set threads = 1", "SET is not allowed"),
        ("copy (select 1) to 'x.csv'", "COPY is not allowed"),
        ("attach 'x.db'", "ATTACH is not allowed"),
        ("install httpfs", "is not allowed"),
        ("select nope from shimmer.messages", 'Referenced column "nope" not found'),
        ("select 1/0::int, cast('x' as int) from shimmer.messages", "Could not convert string 'x' to INT32"),
    ],
)
def test_errors_are_one_line_that_helps(filled, sql, text) -> None:
    lake, _ = filled
    with pytest.raises(PermalakeError) as error:
        lake.query(sql)
    assert text in str(error.value)
    assert "\n" not in str(error.value)


def test_a_query_reads_no_file_of_the_machine(filled, tmp_path) -> None:
    lake, _ = filled
    file = tmp_path / "secret.parquet"
    pq.write_table(pa.table({"secret": [1]}), file)
    for source in (f"'{file}'", f"read_parquet('{file}')", f"read_text('{file}')", f"glob('{tmp_path}/*')"):
        with pytest.raises(PermalakeError) as error:
            lake.query(f"select * from {source}")
        assert "disabled by configuration" in str(error.value) or "no such table" in str(error.value)


def test_a_python_variable_is_no_table(filled) -> None:
    lake, _ = filled
    secret = pa.table({"a": [1]})
    with pytest.raises(PermalakeError, match="secret: no such table"):
        lake.query("select * from secret")
    assert secret.num_rows == 1


def test_pivot_describe_and_explain_are_reading_too(filled) -> None:
    lake, _ = filled
    assert lake.query("describe shimmer.messages").num_rows == 9
    assert lake.query("explain select * from shimmer.messages").num_rows >= 1
    wide = lake.query(
        "pivot shimmer.ms_analytics on milestone_index using sum(message_count) group by ms_range_id"
    )
    assert wide.to_pylist() == [{"ms_range_id": 0, "1": 6, "2": 7}]


@settings(max_examples=60)
@given(st.lists(st.sampled_from(["a", "A", "b", "a_1", "A_1", "a_2", "a_1_1", "b_1", "x y"]), min_size=1))
def test_repeated_columns_are_named_as_duckdb_names_them_in_a_subquery(names) -> None:
    columns = ", ".join(f'{at} "{name}"' for at, name in enumerate(names))
    wanted = duckdb.sql(f"select * from (select {columns})").columns
    found = unique_names(names)
    assert found == wanted
    assert len({name.casefold() for name in found}) == len(names)


def test_repeated_columns_keep_their_own_values(filled) -> None:
    lake, _ = filled
    joined = (
        "select a.date, b.date, a.milestone_index, b.milestone_index from shimmer.ms_analytics a, "
        "shimmer.ms_analytics b where a.date < b.date"
    )
    row = {"date": DAY1, "date_1": DAY2, "milestone_index": 1, "milestone_index_1": 2}
    assert lake.query(joined).to_pylist() == [row]
    assert [batch.to_pylist() for batch in run_query(lake.database, domain_of, joined).batches()] == [[row]]


# Each would write a file or a table if DuckDB ran it; OUT is a file that must not appear.
WRITES = (
    "copy (select 1) to 'OUT'",
    "copy shimmer.messages to 'OUT'",
    "copy (pivot (select 1 a, 2 b) on a using sum(b)) to 'OUT'",
    "create table t as select 1",
    "create table t as pivot (select 1 a, 2 b) on a using sum(b)",
    "create view t as select 1",
    "insert into shimmer.messages select * from shimmer.messages",
    "insert into shimmer.messages by name pivot (select 1 a, 2 b) on a using sum(b)",
    "update shimmer.messages set version = 1",
    "delete from shimmer.messages",
    "truncate shimmer.messages",
    "merge into shimmer.messages using shimmer.messages b on true when matched then delete",
    "export database 'OUT'",
    "attach 'OUT' as t",
    "checkpoint",
    "vacuum",
    "call duckdb_tables()",
    "prepare p as select 1",
    "load 'OUT'",
    "pragma memory_limit='10GB'",
)
HIDDEN = ("SQL", "explain SQL", "EXPLAIN  ANALYZE\nSQL", "explain (analyze) SQL", "explain (format json) SQL")
COMMENTS = ("", " /* */ ", "-- select\n", "/* /* */ select 1 --*/ ", "/* ' */", "\n\t")


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(WRITES), st.sampled_from(HIDDEN), st.sampled_from(COMMENTS), st.sampled_from(COMMENTS))
def test_no_statement_that_writes_is_run(filled, tmp_path, write, hidden, first, second) -> None:
    lake, _ = filled
    out = tmp_path / "out"
    sql = first + hidden.replace("SQL", second + write.replace("OUT", str(out)))
    with pytest.raises(PermalakeError, match=r"not allowed|one statement|[Ss]yntax error|unterminated"):
        lake.query(sql)
    assert not out.exists()


@pytest.mark.parametrize(
    "write",
    ["insert into t values (1)", "insert or replace into t select 1", "delete from t", "update t set a = 1"],
)
def test_a_with_clause_that_writes_is_refused(filled, write) -> None:
    lake, _ = filled
    for query in ("select * from x", "pivot x on a using sum(b)", "from (with y as (from x) from y)"):
        with pytest.raises(PermalakeError, match=f"{write.split()[0].upper()} is not allowed"):
            lake.query(f"with x as ({write} returning *) {query}")


def test_words_that_write_are_harmless_as_text_and_names(filled) -> None:
    lake, _ = filled
    sql = (
        'select \'copy into\' a, "insert" + "update" c from (select 1 "insert", 2 "update") -- delete from t'
    )
    assert lake.query(sql).to_pylist() == [{"a": "copy into", "c": 3}]
    assert lake.query("select 1 a;\n-- that was all\n").to_pylist() == [{"a": 1}]
    assert lake.query("explain analyze select count(*) from shimmer.messages").num_rows == 1


def test_text_beyond_ascii_hides_no_word(filled) -> None:
    lake, _ = filled
    assert lake.query("select 'Größe…' a /* … */ ; -- …").to_pylist() == [{"a": "Größe…"}]
    assert lake.query('select "ü" from (select 1 "ü")').to_pylist() == [{"ü": 1}]
    with pytest.raises(PermalakeError, match="DELETE is not allowed"):
        lake.query("with x as (select '…………………'), y as (delete from t returning *) select * from y")


ENDLESS = "select sum(hash(a.range * b.range)) from range(10000000) a, range(1000000) b"


@pytest.mark.parametrize("sql", [ENDLESS, f"explain analyze {ENDLESS}"])
def test_a_query_ends_at_its_timeout(filled, sql) -> None:
    lake, _ = filled
    with pytest.raises(PermalakeError, match=r"longer than 0\.5 s; narrow it, or raise --timeout"):
        list(run_query(lake.database, domain_of, sql, limits=QueryLimits(timeout=0.5)).batches())


def test_a_query_keeps_to_its_memory(filled) -> None:
    lake, _ = filled
    hungry = "select list(range) from range(50000000)"
    with pytest.raises(PermalakeError, match=r"more than 100MiB of memory; narrow it, or raise --memory"):
        run_query(lake.database, domain_of, hungry, limits=QueryLimits(memory="100MiB")).table()
    sizes = "select current_setting('memory_limit') m, current_setting('max_temp_directory_size') s"
    assert lake.query(sizes).to_pylist() == [{"m": "2.0 GiB", "s": "20.0 GiB"}]


@pytest.mark.parametrize(("limits", "text"), [({"memory": "much"}, "much"), ({"timeout": 0.0}, "0")])
def test_wrong_limits_are_refused(limits, text) -> None:
    with pytest.raises(ConfigError, match=f"{text}: not a"):
        QueryLimits(**limits)
