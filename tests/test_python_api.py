"""The Python API over a small real lake."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime, timedelta

import duckdb
import pyarrow as pa
import pytest

import permalake
from permalake.errors import PermalakeError
from permalake.lake.state import moment
from permalake.python_api import Lake
from support.lakes import DAY1, DAY2, DAY3, NETWORK, OpenLake, build, settings_of

LIGHT = """
import sys, permalake
heavy = ("pyarrow", "duckdb", "pandas", "polars", "pyiceberg", "sqlalchemy", "pydantic", "airflow", "pyspark")
print(*(name for name in heavy if name in sys.modules))
"""
TABLE = "shimmer.ms_analytics"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Days of 7, 5 and 2 messages; the first was published with 4 before, and the second came first."""
    settings = settings_of(tmp_path_factory.mktemp("lake") / "warehouse")
    lake = OpenLake(settings)
    days = ((DAY2, 2, 5), (DAY1, 1, 4), (DAY3, 3, 2), (DAY1, 1, 7))
    done = [build(settings, lake, *day, f"run-{at}") for at, day in enumerate(days)]
    return Lake(settings), [moment(one.published_at) for one in done]


@pytest.fixture
def lake(built):
    return built[0]


def counts(rows):
    return [(row["date"], row["message_count"]) for row in rows.arrow().to_pylist()]


def test_importing_the_package_is_light() -> None:
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_open_reads_the_configuration_file(tmp_path) -> None:
    warehouse = tmp_path / "warehouse"
    lake = OpenLake(settings_of(warehouse))
    build(settings_of(warehouse), lake, DAY1, 1, 3, "run")
    file = tmp_path / "permalake.toml"
    file.write_text(f'[lake]\nwarehouse = "{warehouse}"\n')
    assert counts(permalake.open(file).table(TABLE)) == [(DAY1, 3)]
    with pytest.raises(PermalakeError, match=r"absent\.toml"):
        permalake.open(tmp_path / "absent.toml")


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, [(DAY1, 7), (DAY2, 5), (DAY3, 2)]),
        ({"start": "2022-09-29"}, [(DAY2, 5), (DAY3, 2)]),
        ({"end": DAY2}, [(DAY1, 7), (DAY2, 5)]),
        ({"start": DAY2, "end": datetime(2022, 9, 29, 23)}, [(DAY2, 5)]),
        ({"start": DAY3 + timedelta(days=1)}, []),
    ],
)
def test_a_range_of_days_in_order(lake, limits, expected) -> None:
    assert counts(lake.table(TABLE, **limits)) == expected
    assert lake.table(TABLE, **limits).pandas()["message_count"].tolist() == [n for _, n in expected]
    assert lake.table(TABLE, **limits).polars()["message_count"].to_list() == [n for _, n in expected]
    assert [row[2] for row in lake.table(TABLE, **limits).duckdb().order("date").fetchall()] == [
        n for _, n in expected
    ]
    assert sum(batch.num_rows for batch in lake.table(TABLE, **limits).batches()) == len(expected)


def test_days_outside_the_range_are_not_opened(lake) -> None:
    assert len(list(lake._reader.dataset(NETWORK, "messages", DAY2, DAY2).get_fragments())) == 1


def test_an_earlier_state(built) -> None:
    lake, times = built
    assert [len(counts(lake.table(TABLE, as_of=time))) for time in times] == [1, 2, 3, 3]
    assert counts(lake.table(TABLE, end=DAY1, as_of=times[2].isoformat())) == [(DAY1, 4)]
    assert counts(lake.table(TABLE, as_of="2020-01-01T00:00:00Z")) == []
    naive = times[2].astimezone(UTC).replace(tzinfo=None)
    sql = "SELECT sum(message_count) AS n FROM shimmer.ms_analytics"
    assert lake.query(sql, as_of=naive).arrow()["n"][0].as_py() == 11
    assert lake.query(sql).pandas()["n"][0] == 14


def test_chosen_columns_in_their_order(lake) -> None:
    rows = lake.table("shimmer.messages", end=DAY1, columns=["white_flag_index", "message_id"])
    assert rows.columns == rows.arrow().column_names == ["white_flag_index", "message_id"]
    assert rows.duckdb().columns == rows.columns
    assert list(rows.pandas().columns) == rows.polars().columns == rows.columns


def test_types_are_kept(lake) -> None:
    rows = lake.table("shimmer.messages", end=DAY1)
    assert rows.arrow()["message"][0].as_py() == b"synthetic"
    assert str(rows.pandas()["date"].dtype).startswith("datetime64")
    assert rows.polars()["date"][0] == DAY1
    assert rows.duckdb().limit(1).fetchall()[0][-1] == DAY1


def test_relations_join_in_a_connection(lake) -> None:
    connection = duckdb.connect()
    analytics = lake.table(TABLE).duckdb(connection)
    lake.table("shimmer.messages").duckdb(connection).create_view("messages")
    counted = analytics.query(
        "analytics",
        "SELECT a.date, message_count, count(*) FROM analytics a JOIN messages USING (milestone_index) "
        "GROUP BY ALL ORDER BY a.date",
    ).fetchall()
    assert counted == [(DAY1, 7, 7), (DAY2, 5, 5), (DAY3, 2, 2)]


def test_the_default_connection_sees_a_variable(lake) -> None:
    rows = lake.table(TABLE, start=DAY2).duckdb()
    assert rows.columns[-1] == "date"
    assert duckdb.sql("SELECT sum(message_count) FROM rows").fetchall() == [(7,)]


def test_views_are_tables_too(lake) -> None:
    assert "shimmer.unspent_outputs" in lake.tables()
    assert TABLE in lake.tables()
    rows = lake.table("shimmer.unspent_outputs", start=DAY1, columns=["amount"])
    assert rows.arrow().schema.field("amount").type == pa.int64()
    assert rows.arrow().num_rows == 0


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("shimmer.ms_analytic", {}, r"ms_analytic: no such table.*did you mean shimmer\.ms_analytics"),
        ("ms_analytics", {}, r"did you mean shimmer\.ms_analytics"),
        (TABLE, {"start": "28.9.2022"}, r"start='28\.9\.2022': not a day; write it as 2022-09-28"),
        (TABLE, {"end": "x"}, "end='x': not a day"),
        (TABLE, {"as_of": "noon"}, "as_of='noon': not a time; write it as"),
        (TABLE, {"columns": ["day"]}, "no column day; it has ms_range_id, "),
    ],
)
def test_what_is_wrong_is_told_on_one_line(lake, name, arguments, message) -> None:
    with pytest.raises(PermalakeError, match=message) as told:
        lake.table(name, **arguments)
    assert "\n" not in str(told.value)


def test_a_query_cannot_write(lake) -> None:
    with pytest.raises(PermalakeError):
        lake.query("DELETE FROM shimmer.messages")


def test_without_polars_the_error_says_what_to_do(lake, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(PermalakeError, match="pip install polars"):
        lake.table(TABLE).polars()


def test_no_day_is_a_date_of_its_own(lake) -> None:
    assert counts(lake.table(TABLE, start=date.min, end=date.max)) == counts(lake.table(TABLE))


READ_ONLY = """
import duckdb, sys
connection = duckdb.connect(sys.argv[1], read_only=True)
for sql in sys.argv[2:]:
    print(connection.sql(sql).fetchall()[0][0])
"""
QUESTIONS = (
    "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'shimmer'",
    "SELECT sum(message_count) FROM shimmer.ms_analytics",
    "SELECT count(*) FROM shimmer.nft_outputs",
    "SELECT count(*) FROM shimmer.unspent_outputs",
)


def test_a_duckdb_file_is_read_by_another_process(lake, tmp_path) -> None:
    file = tmp_path / "it's a lake.duckdb"
    count = lake.write_duckdb(file)
    assert count == len(lake.tables())
    command = [sys.executable, "-c", READ_ONLY, file, *QUESTIONS]
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout.split() == [str(count), "14", "0", "0"]
        lake.write_duckdb(str(file))
    assert [one.name for one in tmp_path.iterdir()] == [file.name]
