"""Every query of docs/analysts.md runs, in the lake and through the file for BI tools."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from permalake.paths import ROOT

DRIVER = ROOT / "tests" / "support" / "superset_driver"
UV = Path(sys.executable).with_name("uv")

PAGE = (ROOT / "docs" / "analysts.md").read_text()
QUERIES = dict(re.findall(r"^### (\d+\. .*?)\n\n```sql\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL))


def test_every_query_is_numbered_and_found() -> None:
    assert [int(title.split(".")[0]) for title in QUERIES] == list(range(1, len(QUERIES) + 1))
    assert PAGE.count("```sql") == len(QUERIES) > 20


@pytest.mark.parametrize("title", QUERIES)
def test_a_query_has_rows_and_values(both, title) -> None:
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


def test_a_bi_tool_sees_every_table(both, file) -> None:
    listed = file.sql("SELECT table_schema || '.' || table_name FROM information_schema.tables").fetchall()
    assert sorted(name for (name,) in listed) == both.tables()


@pytest.mark.parametrize("title", QUERIES)
def test_a_bi_tool_gets_the_same_rows(both, file, title) -> None:
    found = file.sql(QUERIES[title]).to_arrow_table().to_pylist()
    own = both.query(QUERIES[title]).arrow().to_pylist()
    if "LIMIT" in QUERIES[title]:
        # Which of several equal rows comes first is left to the engine.
        assert len(found) == len(own)
    else:
        assert sorted(map(str, found)) == sorted(map(str, own))


@pytest.fixture(scope="module")
def superset(both, tmp_path_factory):
    """What Superset's driver, with the DuckDB that it comes with, gets from the file."""
    folder = tmp_path_factory.mktemp("superset")
    python = folder / "venv" / "bin" / "python"
    subprocess.run([UV, "venv", "-q", "--python", sys.executable, folder / "venv"], check=True, timeout=60)
    locked = ["--require-hashes", "--python", python, DRIVER / "requirements.txt"]
    subprocess.run([UV, "pip", "sync", "-q", *locked], check=True, timeout=300)
    both.write_duckdb(folder / "lake.duckdb")
    asked = {
        "uri": f"duckdb:///{folder}/lake.duckdb",
        "schemas": ["wormhole", "shimmer"],
        "table": "tvl_daily",
        "queries": QUERIES,
    }
    command, text = [python, DRIVER / "ask.py"], json.dumps(asked)
    told = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=120)
    assert told.returncode == 0, told.stderr[-2000:]
    return json.loads(told.stdout)


def test_superset_lists_schemas_tables_and_columns(both, superset) -> None:
    assert {"lake.wormhole", "lake.shimmer"} <= set(superset["schemas"])
    listed = [f"{schema}.{name}" for schema, names in superset["views"].items() for name in names]
    assert sorted(listed) == both.tables()
    assert superset["columns"] == both.table("wormhole.tvl_daily").columns


@pytest.mark.parametrize("title", QUERIES)
def test_superset_gets_the_same_rows(file, superset, title) -> None:
    found = file.sql(QUERIES[title]).to_arrow_table().to_pylist()
    own = [[str(value) for value in row.values()] for row in found]
    if "LIMIT" in QUERIES[title]:
        assert len(superset["rows"][title]) == len(own)
    else:
        assert sorted(superset["rows"][title]) == sorted(own)
