"""Every query of docs/analysts.md runs, in the lake and through the file for BI tools."""

from __future__ import annotations

import re

import duckdb
import pytest

from permalake.paths import ROOT

PAGE = (ROOT / "docs" / "analysts.md").read_text()
QUERIES = dict(re.findall(r"^### (\d+\. .*?)\n\n```sql\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL))


def test_there_are_twenty():
    assert [int(title.split(".")[0]) for title in QUERIES] == list(range(1, 21))
    assert PAGE.count("```sql") == 20


@pytest.mark.parametrize("title", QUERIES)
def test_a_query_has_rows_and_values(both, title):
    rows = both.query(QUERIES[title]).arrow()
    assert rows.num_rows > 0
    for name in rows.column_names:
        assert rows[name].null_count < rows.num_rows, f"{name} is always null"


@pytest.fixture(scope="module")
def file(both, tmp_path_factory):
    target = tmp_path_factory.mktemp("bi") / "lake.duckdb"
    both.write_duckdb(target)
    with duckdb.connect(str(target), read_only=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def test_a_bi_tool_sees_every_table(both, file):
    listed = file.sql("SELECT table_schema || '.' || table_name FROM information_schema.tables").fetchall()
    assert sorted(name for (name,) in listed) == both.tables()


@pytest.mark.parametrize("title", QUERIES)
def test_a_bi_tool_gets_the_same_rows(both, file, title):
    found = file.sql(QUERIES[title]).to_arrow_table().to_pylist()
    own = both.query(QUERIES[title]).arrow().to_pylist()
    if "LIMIT" in QUERIES[title]:
        # Which of several equal rows comes first is left to the engine.
        assert len(found) == len(own)
    else:
        assert sorted(map(str, found)) == sorted(map(str, own))
