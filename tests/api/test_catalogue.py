"""The Data pages: every table and view with its meaning, days, size, rows and files."""

from __future__ import annotations

import io

import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient

from permalake.api.app import create_app
from permalake.config.serving import ServeSettings
from permalake.domains import domain_of

JSON = {"Accept": "application/json"}
HTML = {"Accept": "text/html"}
NETWORKS = ("shimmer", "iota", "wormhole")


@pytest.fixture(scope="module")
def ask(whole_lake):
    """Function that asks for a path of the pages over both synthetic tangles and the Wormhole world."""
    serve = ServeSettings(sql_seconds=60, timeout=60)
    settings = whole_lake.settings.model_copy(update={"serve": serve})
    with TestClient(create_app(settings)) as client:

        def asked(path, headers=JSON, **parameters):
            return client.get(path, headers=headers, params=parameters or None)

        yield asked


def sql(ask, text):
    answer = ask("/api/sql/v1", sql=text)
    assert answer.status_code == 200, answer.text
    return answer.json()["items"]


def united(ask, statements):
    """The rows of many statements; as many at once as fit into an address."""
    parts = [statements[at : at + 12] for at in range(0, len(statements), 12)]
    return [row for part in parts for row in sql(ask, " UNION ALL ".join(part))]


def tables_of(ask, network):
    return {one["table"]: one for one in ask(f"/data/{network}").json()["tables"]}


@pytest.mark.parametrize("network", NETWORKS)
def test_the_catalogue_lists_what_sql_can_read(ask, network) -> None:
    listed = tables_of(ask, network)
    assert set(listed) == {one["table"] for one in sql(ask, "SHOW TABLES") if one["network"] == network}
    stored = {name: one for name, one in listed.items() if one["kind"] == "table"}
    real = "date > DATE '1970-01-01' AND date <= today()"
    counts = [
        f"""SELECT '{name}' AS name, count(*) AS n, count(DISTINCT date) AS days,
        CAST(min(date) FILTER ({real}) AS VARCHAR) AS first,
        CAST(max(date) FILTER ({real}) AS VARCHAR) AS last,
        CAST(min(date) FILTER (date > today()) AS VARCHAR) AS made_up FROM "{network}".{name}"""
        for name in stored
    ]
    rows = united(ask, counts)
    assert len(rows) == len(stored)
    for row in rows:
        told = stored[row["name"]]
        assert (told["rows"], told["days"]) == (row["n"], row["days"]), row["name"]
        assert (told["real_first"], told["real_last"], told["synthetic_first"]) == (
            *(row["first"], row["last"], row["made_up"]),
        ), row["name"]
        assert told["bytes"] > 0 or not row["n"]
    assert all(one["rows"] is None for one in listed.values() if one["kind"] == "view")


@pytest.mark.parametrize("network", NETWORKS)
def test_every_table_has_a_page_with_its_columns_and_a_file_with_its_rows(ask, network) -> None:
    domain = domain_of(network)
    contracts = {**domain.tables, **{view.name: view for view in domain.views}}
    held, counts = {}, []
    for name in tables_of(ask, network):
        found = ask(f"/data/{network}/{name}").json()
        assert [one["name"] for one in found["columns"]] == [one.name for one in contracts[name].columns]  # type: ignore[attr-defined]
        assert all(one["meaning"] for one in found["columns"]), name
        [day] = [what for what in found["files"] if what != "all days"] or [None]
        assert (day is None) == (found["days"] == 0 or name == "chains"), name
        if day is None:
            assert not found["rows"], name
            continue
        answer = ask(found["files"][day]["parquet"])
        assert answer.status_code == 200, (name, answer.text)
        held[name] = pq.read_table(io.BytesIO(answer.content)).num_rows
        assert len(found["sample"]) == min(held[name], 10), name
        of_day = f"\"{network}\".{name} WHERE date = '{day}'"
        counts.append(f"SELECT '{name}' AS name, count(*) AS n FROM {of_day}")
    assert {row["name"]: row["n"] for row in united(ask, counts)} == held


def test_a_page_shows_meaning_rules_rows_and_sql(ask) -> None:
    text = ask("/data/shimmer/messages", HTML).text
    for words in (
        "white-flag order",
        "matches ^[0-9a-f]{64}$",
        "First rows of",
        "SELECT * FROM shimmer.messages WHERE",
    ):
        assert words in text, words


def test_a_word_finds_tables_by_name_and_meaning(ask) -> None:
    found = {one["table"] for one in ask("/data/wormhole", q="tvl").json()["tables"]}
    assert {"tvl_daily", "tvl_totals"} <= found
    assert len(found) < 15
    assert "No table has this word" in ask("/data/wormhole", HTML, q="nosuchword").text


@pytest.mark.parametrize("path", ["/data/nosuch", "/data/shimmer/nosuch", "/data/nosuch/messages"])
def test_what_is_not_there_is_404(ask, path) -> None:
    assert ask(path).status_code == 404
    assert "nosuch" in ask(path, HTML).text


def test_the_first_page_sums_up_each_namespace(ask) -> None:
    found = {one["network"]: one for one in ask("/data").json()["namespaces"]}
    assert set(found) == {*NETWORKS, "cut"}
    listed = tables_of(ask, "wormhole").values()
    assert found["wormhole"]["rows"] == sum(one["rows"] or 0 for one in listed)
    assert found["wormhole"]["bytes"] == sum(one["bytes"] or 0 for one in listed)
