"""``/api/sql/v1`` and its page: what a statement may do, how long, how much, and where it may be asked."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
from html import unescape

import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient

from permalake.api.app import create_app
from permalake.api.sql import PATH, takes_sql
from permalake.config import Settings
from permalake.config.serving import ServeSettings
from support import lakes
from support.lakes import DAY1, NETWORK
from support.whole_server import PERMALAKE

NETWORKS = {NETWORK: {"protocol": "stardust", "bech32_hrp": "smr", "path": "."}}
EVERY_KIND = (
    "SELECT 1 AS whole, 2::HUGEINT ** 70 AS huge, 1.50::DECIMAL(9,2) AS money, '\\xAB'::BLOB AS raw, "
    "DATE '2022-09-28' AS day, TIMESTAMPTZ '2022-09-28 12:00:00.5+00' AS moment, [1, 2] AS list, "
    "{'a': 1} AS part, true AS yes, NULL AS nothing, 'a,b' AS text"
)


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    made = Settings(lake={"warehouse": str(tmp_path_factory.mktemp("sql") / "lake")}, networks=NETWORKS)  # type: ignore[arg-type]
    lake = lakes.OpenLake(made)
    attempt = lake.begin(NETWORK, DAY1, DAY1, "one")
    lakes.stage_day(made, attempt, DAY1, 1, 5)
    lake.builds.publish(lakes.pass_audit(attempt))
    return made


def client_of(settings, **serve):
    return TestClient(create_app(settings.model_copy(update={"serve": ServeSettings(**serve)})))


@pytest.fixture(scope="module")
def client(settings):
    with client_of(settings, sql_rows=200, sql_seconds=60, timeout=60) as client:
        yield client


def ask(client, sql, form="json"):
    return client.get(PATH, params={"sql": sql, "format": form})


def test_values_are_those_of_the_command(client, settings, tmp_path) -> None:
    config = tmp_path / "permalake.toml"
    config.write_text(f'[lake]\nwarehouse = "{settings.lake.warehouse}"\n')
    command = [PERMALAKE, "query", EVERY_KIND, "--config", config, "--format", "json"]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    found = ask(client, EVERY_KIND).json()
    assert found["items"] == json.loads(told.stdout)
    assert [one["name"] for one in found["columns"]] == list(found["items"][0])
    [line] = csv.DictReader(io.StringIO(ask(client, EVERY_KIND, "csv").text))
    assert line["list"] == "[1, 2]"
    assert line["nothing"] == ""
    assert line["text"] == "a,b"
    [row] = pq.read_table(io.BytesIO(ask(client, EVERY_KIND, "parquet").content)).to_pylist()
    assert row["list"] == [1, 2]
    assert row["raw"] == b"\xab"


def test_the_published_tables_are_read(client) -> None:
    found = ask(client, f"SELECT milestone_index, message_count FROM {NETWORK}.ms_analytics").json()
    assert found["items"] == [{"milestone_index": 1, "message_count": 5}]
    tables = ask(client, "SHOW TABLES").json()["items"]
    assert {"network": NETWORK, "table": "ms_analytics"} in tables
    assert {one["network"] for one in tables} == {NETWORK}


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("SELECT * FROM read_csv('/etc/passwd')", "disabled"),
        ("SELECT * FROM '/etc/passwd'", "passwd"),
        ("COPY (SELECT 1) TO '/tmp/out.csv'", "COPY"),
        ("ATTACH '/tmp/other.db'", "ATTACH"),
        ("SET enable_external_access = true", "SET"),
        ("SELECT 1; SELECT 2", "one statement"),
        ("INSTALL httpfs", "not allowed"),
        ("SELECT * FROM nosuch.messages", "nosuch"),
        ("SELECT FROM WHERE", "syntax"),
    ],
)
def test_a_statement_reads_the_lake_and_nothing_else(client, sql, word) -> None:
    answer = ask(client, sql)
    assert answer.status_code == 400
    assert word in answer.json()["detail"]
    assert ask(client, "SELECT 1 AS one").json()["items"] == [{"one": 1}]


@pytest.mark.parametrize("form", ["json", "csv", "parquet"])
def test_more_rows_than_the_limit_are_left_out(client, form) -> None:
    answer = ask(client, "SELECT range AS n FROM range(201)", form)
    whole = ask(client, "SELECT range AS n FROM range(200)", form)
    if form == "json":
        assert [len(one.json()["items"]) for one in (answer, whole)] == [200, 200]
        assert [one.json()["isCut"] for one in (answer, whole)] == [True, False]
    else:
        assert [one.headers["x-rows-cut"] for one in (answer, whole)] == ["true", "false"]
        assert answer.content == whole.content


def test_an_answer_has_at_most_32_mebibytes(client) -> None:
    cut = ask(client, "SELECT repeat('x', 1000000) AS text FROM range(60)").json()
    assert cut["isCut"]
    assert 16 <= len(cut["items"]) <= 33
    for rows in (1, 3):
        answer = ask(client, f"SELECT repeat('x', 40000000) AS text FROM range({rows})")
        assert answer.status_code == 400
        assert "at most 32 MiB" in answer.json()["detail"]


def test_a_statement_that_takes_too_long_is_ended(settings, client) -> None:
    with client_of(settings, sql_seconds=2) as hurried:
        answer = ask(hurried, "SELECT count(*) FROM range(10000000) a, range(10000000) b")
        assert answer.status_code == 504
        assert "sql_seconds" in answer.json()["detail"]
    assert ask(client, "SELECT 1 AS one").status_code == 200


def test_a_statement_gets_no_more_memory_than_the_limit(settings) -> None:
    with client_of(settings, sql_memory="64MiB", sql_seconds=60, timeout=60) as client:
        answer = ask(client, "SELECT length(repeat('x', 1500000000)) AS n")
        assert answer.status_code == 400
        assert "sql_memory" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("serve", "takes"),
    [
        ({}, True),
        ({"host": "localhost"}, True),
        ({"host": "::1"}, True),
        ({"host": "0.0.0.0"}, False),
        ({"host": "lake.example"}, False),
        ({"root_path": "/lake"}, False),
        ({"trusted_proxies": ("127.0.0.1",)}, False),
        ({"host": "0.0.0.0", "sql": True}, True),
        ({"sql": False}, False),
    ],
)
def test_only_the_loopback_takes_sql_unless_it_is_set(serve, takes) -> None:
    assert takes_sql(ServeSettings(**serve)) == takes


def test_a_server_that_takes_no_sql_says_so(settings) -> None:
    with client_of(settings, sql=False) as client:
        answer = ask(client, "SELECT 1")
        assert (answer.status_code, "[serve]" in answer.json()["detail"]) == (403, True)
        html = {"Accept": "text/html"}
        assert client.get("/data/sql?sql=SELECT+1", headers=html).status_code == 403
        text = client.get("/data", headers=html).text
        assert "<textarea" not in text
        assert "sql = true" in text


def test_the_page_shows_rows_and_errors_and_is_reproduced_by_its_link(client) -> None:
    html = {"Accept": "text/html"}
    sql = "SELECT '<script>' AS evil, range AS n FROM range(3)"
    answer = client.get("/data/sql", params={"sql": sql}, headers=html)
    assert "&lt;script&gt;" in answer.text
    assert "<script>" not in answer.text
    assert client.get("/data/sql", params={"sql": sql, "format": "json"}).json()["rows"][2]["n"] == 2
    wrong = client.get("/data/sql", params={"sql": "DROP TABLE x"}, headers=html)
    assert wrong.status_code == 200
    assert "DROP is not allowed" in wrong.text
    assert client.get("/data/sql", headers=html).status_code == 200


def test_a_link_to_a_publication_stays_what_it_was(tmp_path) -> None:
    made = Settings(lake={"warehouse": str(tmp_path / "lake")}, networks=NETWORKS)  # type: ignore[arg-type]
    lake = lakes.OpenLake(made)
    lakes.build(made, lake, DAY1, 1, 5, "first")
    sql = f"SELECT sum(message_count) AS n FROM {NETWORK}.ms_analytics"
    with client_of(made, sql_seconds=60, timeout=60) as client:
        page = client.get("/data/sql", params={"sql": sql}, headers={"Accept": "text/html"}).text
        [link] = {unescape(one) for one in re.findall(r'href="([^"]*publication=\d+)"', page)}
        lakes.build(made, lake, DAY1, 1, 8, "second")
        assert ask(client, sql).json()["items"] == [{"n": 8}]
        assert client.get(link, headers={"Accept": "application/json"}).json()["rows"] == [{"n": 5}]
        pinned = client.get(link, headers={"Accept": "text/html"}).text
        assert "As publication 1 left the lake." in pinned
        [file] = {unescape(one) for one in re.findall(r'href="([^"]*format=csv)"', pinned) if PATH in one}
        assert client.get(file).text == "n\n5\n"
        absent = client.get(PATH, params={"sql": sql, "publication": 99})
        assert absent.status_code == 400
        assert "publication 99: there is none; the last one is 2" in absent.json()["detail"]
