"""SQL over the published state: what is read, when, and what is not allowed."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lake_support import DAY1, DAY2, NETWORK, build, messages, pass_audit, put, settings_of, state

from permalake.contracts import tables_of
from permalake.errors import PermalakeError
from permalake.lake import Lake
from permalake.lake.catalog import open_catalog
from permalake.lake.state import moment


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """Day 1 with 5 messages, then day 2 with 7, then day 1 rebuilt with 6."""
    settings = settings_of(tmp_path_factory.mktemp("lake") / "warehouse")
    lake = Lake(settings)
    done = [
        build(settings, lake, DAY1, 1, 5, "a"),
        build(settings, lake, DAY2, 2, 7, "b"),
        build(settings, lake, DAY1, 1, 6, "c"),
    ]
    return lake, [moment(publication.published_at) for publication in done]


def test_as_of_reads_the_state_of_the_last_publication_at_or_before(filled):
    lake, times = filled
    count = "select count(*) n from shimmer.messages"
    told = [lake.query(count, as_of=time)["n"][0].as_py() for time in times]
    assert told == [5, 12, 13]
    assert lake.query(count, as_of=datetime(2020, 1, 1, tzinfo=UTC))["n"][0].as_py() == 0
    assert lake.query(count)["n"][0].as_py() == 13


def test_sums_filters_and_empty_tables(filled):
    lake, _ = filled
    assert state(lake) == {DAY1: (6, 6), DAY2: (7, 7)}
    some = "select count(*) n from shimmer.messages where date = DATE '2022-09-29' and white_flag_index < 3"
    assert lake.query(some)["n"][0].as_py() == 3
    assert lake.query("select * from shimmer.nft_outputs").num_rows == 0
    joined = "select t.tag from shimmer.messages m left join shimmer.tags t using (message_id)"
    assert lake.query(joined).num_rows == 13


def test_a_network_with_a_dash_is_quoted(tmp_path):
    settings = settings_of(tmp_path)
    lake = Lake(settings)
    attempt = lake.begin("chrysalis-mainnet", DAY1, DAY1, "run")
    put(settings, attempt, "messages", messages(DAY1, 1, 2))
    pass_audit(attempt)
    lake.publish(attempt)
    assert lake.query('select * from "chrysalis-mainnet".messages').num_rows == 2
    with pytest.raises(PermalakeError, match=r'did you mean "chrysalis-mainnet"\.messages'):
        lake.query("select * from messages")


def test_a_table_made_by_an_older_contract_gains_the_new_columns(tmp_path):
    settings = settings_of(tmp_path)
    lake = Lake(settings)
    catalog = open_catalog(settings, "permalake")
    old = pa.schema([field for field in tables_of(NETWORK)["messages"].arrow if field.name != "proof"])
    catalog.create_namespace(NETWORK)
    catalog.create_table((NETWORK, "messages"), schema=old).append(
        pa.Table.from_pylist(messages(DAY1, 1, 2), schema=old)
    )
    assert "proof" not in lake.query("select * from shimmer.messages").column_names
    lake.ensure(NETWORK)
    rows = lake.query("select proof, white_flag_index from shimmer.messages order by 2").to_pylist()
    assert rows == [{"proof": None, "white_flag_index": 0}, {"proof": None, "white_flag_index": 1}]


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
def test_errors_are_one_line_that_helps(filled, sql, text):
    lake, _ = filled
    with pytest.raises(PermalakeError) as error:
        lake.query(sql)
    assert text in str(error.value)
    assert "\n" not in str(error.value)


def test_a_query_reads_no_file_of_the_machine(filled, tmp_path):
    lake, _ = filled
    file = tmp_path / "secret.parquet"
    pq.write_table(pa.table({"secret": [1]}), file)
    for source in (f"'{file}'", f"read_parquet('{file}')", f"read_text('{file}')", f"glob('{tmp_path}/*')"):
        with pytest.raises(PermalakeError) as error:
            lake.query(f"select * from {source}")
        assert "disabled by configuration" in str(error.value) or "no such table" in str(error.value)


def test_a_python_variable_is_no_table(filled):
    lake, _ = filled
    secret = pa.table({"a": [1]})
    with pytest.raises(PermalakeError, match="secret: no such table"):
        lake.query("select * from secret")
    assert secret.num_rows == 1


def test_pivot_describe_and_explain_are_reading_too(filled):
    lake, _ = filled
    assert lake.query("describe shimmer.messages").num_rows == 9
    assert lake.query("explain select * from shimmer.messages").num_rows >= 1
    wide = lake.query(
        "pivot shimmer.ms_analytics on milestone_index using sum(message_count) group by ms_range_id"
    )
    assert wide.to_pylist() == [{"ms_range_id": 0, "1": 6, "2": 7}]
