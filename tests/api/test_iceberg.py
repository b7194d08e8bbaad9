"""The Iceberg REST catalog, read by real clients: PyIceberg, Spark and DuckDB."""

from __future__ import annotations

import re
from types import SimpleNamespace

import httpx
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError, RESTError
from pyiceberg.expressions import AlwaysTrue
from sqlalchemy import update

from permalake.api.app import create_app
from permalake.config import Settings
from permalake.lake.state import networks, publications
from permalake.paths import ROOT
from support.lakes import DAY1, DAY2, DAY3, NETWORK, OpenLake, build
from support.live_api import live_api

TABLES = ("messages", "ms_analytics", "date_cache")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """One server over a lake with two publications; tests publish more."""
    warehouse = tmp_path_factory.mktemp("iceberg") / "lake"
    configured = {NETWORK: {"protocol": "stardust", "bech32_hrp": "smr", "path": "."}}
    settings = Settings(lake={"warehouse": str(warehouse)}, networks=configured)  # type: ignore[arg-type]
    lake = OpenLake(settings)
    first = build(settings, lake, DAY1, 1, 4, "first")
    second = build(settings, lake, DAY2, 2, 5, "second")
    with live_api(create_app(settings)) as address:
        yield SimpleNamespace(
            settings=settings,
            lake=lake,
            address=address,
            uri=f"{address}/iceberg",
            first=first,
            second=second,
        )


def connect(uri, warehouse="latest"):
    return RestCatalog("permalake", uri=uri, warehouse=str(warehouse))


def rows_of(catalog, table, network=NETWORK):
    return catalog.load_table((network, table)).scan(row_filter=AlwaysTrue()).to_arrow().num_rows


def counted(lake, table, network=NETWORK):
    return lake.query(f'select count(*) n from "{network}".{table}').to_pylist()[0]["n"]


def test_a_client_stays_on_its_publication_while_others_publish(served) -> None:
    pinned = connect(served.uri)
    before = {table: counted(served.lake, table) for table in TABLES}
    assert {table: rows_of(pinned, table) for table in TABLES} == before
    build(served.settings, served.lake, DAY3, 3, 6, "third")
    build(served.settings, served.lake, DAY1, 1, 9, "corrected")
    assert {table: rows_of(pinned, table) for table in TABLES} == before
    after = {table: counted(served.lake, table) for table in TABLES}
    assert after["messages"] == before["messages"] + 6 + 5
    assert {table: rows_of(connect(served.uri), table) for table in TABLES} == after


def test_numbers_and_times_travel(served) -> None:
    first, second = served.first, served.second
    assert rows_of(connect(served.uri, first.id), "messages") == 4
    assert rows_of(connect(served.uri, second.id), "messages") == 9
    assert rows_of(connect(served.uri, first.published_at), "messages") == 4
    assert rows_of(connect(served.uri, second.published_at.removesuffix("Z")), "messages") == 9
    assert rows_of(connect(served.uri, 0), "messages") == 0


def test_a_table_tells_of_no_snapshot_but_that_of_its_publication(served) -> None:
    for number in (served.first.id, served.second.id):
        metadata = connect(served.uri, number).load_table((NETWORK, "messages")).metadata
        assert [one.snapshot_id for one in metadata.snapshots] == [metadata.current_snapshot_id]
        assert [one.snapshot_id for one in metadata.snapshot_log] == [metadata.current_snapshot_id]
        assert not metadata.metadata_log


def test_namespaces_and_tables_are_listed_and_checked(served) -> None:
    catalog = connect(served.uri)
    assert catalog.list_namespaces() == [(NETWORK,)]
    listed = {name for _, name in catalog.list_tables(NETWORK)}
    assert listed == {name for network, name in served.lake.reader.published() if network == NETWORK}
    assert catalog.namespace_exists(NETWORK)
    assert catalog.table_exists((NETWORK, "messages"))
    assert not catalog.namespace_exists("nosuch")
    assert not catalog.table_exists((NETWORK, "nosuch"))
    with pytest.raises(NoSuchNamespaceError):
        catalog.list_tables("nosuch")
    with pytest.raises(NoSuchTableError):
        catalog.load_table((NETWORK, "nosuch"))
    root = f"{served.uri}/v1/publication/1/namespaces/{NETWORK}"
    assert httpx.head(root).status_code == 204
    assert httpx.head(f"{root}/tables/messages").status_code == 204
    assert httpx.head(f"{root}/tables/nosuch").status_code == 404


def test_an_entity_tag_saves_the_answer_until_the_publication_differs(served) -> None:
    addresses = [
        f"{served.uri}/v1/publication/{publication.id}/namespaces/{NETWORK}/tables/messages"
        for publication in (served.first, served.second)
    ]
    tag, other = (httpx.get(address).headers["etag"] for address in addresses)
    assert tag != other
    assert httpx.get(addresses[0], headers={"If-None-Match": tag}).status_code == 304
    assert httpx.get(addresses[1], headers={"If-None-Match": tag}).status_code == 200


def assert_refused(answer, status, kind) -> None:
    assert answer.status_code == status
    error = answer.json()["error"]
    assert answer.json().keys() == {"error"}
    assert (error["code"], error["type"]) == (status, kind)
    assert error["message"]
    assert "\n" not in error["message"]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("path", ["namespaces", "namespaces/shimmer", "namespaces/shimmer/tables/messages"])
def test_writes_are_refused(served, method, path) -> None:
    answer = httpx.request(method, f"{served.uri}/v1/publication/1/{path}", content=b"{")
    assert_refused(answer, 406, "UnsupportedOperationException")


def test_writes_of_a_client_change_nothing(served) -> None:
    catalog = connect(served.uri)
    with pytest.raises((RESTError, NotImplementedError)):
        catalog.create_namespace("more")
    with pytest.raises((RESTError, NotImplementedError)):
        catalog.drop_table((NETWORK, "messages"))
    assert catalog.table_exists((NETWORK, "messages"))


@pytest.mark.parametrize(
    ("path", "status", "kind"),
    [
        ("", 404, "NotFoundException"),
        ("/", 404, "NotFoundException"),
        ("/v1/nosuch", 404, "NotFoundException"),
        ("/v1/publication/1/namespaces/shimmer/views", 404, "NotFoundException"),
        ("/v1/publication/999999/namespaces", 404, "NoSuchNamespaceException"),
        ("/v1/publication/1/namespaces/a%1Fb", 404, "NoSuchNamespaceException"),
        ("/v1/publication/1/namespaces?parent=nosuch", 404, "NoSuchNamespaceException"),
        ("/v1/publication/-1/namespaces", 400, "BadRequestException"),
        ("/v1/publication/99999999999999999999999/namespaces", 400, "BadRequestException"),
        (f"/v1/publication/1/namespaces/{'a' * 65}", 400, "BadRequestException"),
        (f"/v1/config?warehouse={'9' * 65}", 400, "BadRequestException"),
        ("/v1/config?warehouse=999999", 400, "BadRequestException"),
        ("/v1/config?warehouse=nosuch", 400, "BadRequestException"),
        ("/v1/config?warehouse=2015-01-01", 400, "BadRequestException"),
        ("/v1/config?warehouse=0001-01-01T00:00:00%2B14:00", 400, "BadRequestException"),
    ],
)
def test_what_the_catalog_does_not_have_is_refused_in_its_form(served, path, status, kind) -> None:
    assert_refused(httpx.get(f"{served.uri}{path}"), status, kind)


def test_a_forgotten_publication_is_refused_and_the_current_one_is_not(served) -> None:
    forgotten = served.first.id
    with served.lake.database.write() as connection:
        second = publications.c.id == served.second.id
        connection.execute(
            update(networks).values(
                history_from=publications.select()
                .where(second)
                .with_only_columns(publications.c.published_at)
                .scalar_subquery()
            )
        )
    try:
        at = f"namespaces/{NETWORK}/tables/messages"
        assert_refused(
            httpx.get(f"{served.uri}/v1/publication/{forgotten}/{at}"), 404, "NoSuchTableException"
        )
        assert rows_of(connect(served.uri, served.second.id), "messages") == 9
        assert rows_of(connect(served.uri), "messages") == counted(served.lake, "messages")
    finally:
        with served.lake.database.write() as connection:
            connection.execute(update(networks).values(history_from=None))


def test_no_secret_leaves_the_server(monkeypatch) -> None:
    from permalake.api.iceberg import _access

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "synthetic-key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "synthetic-secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "synthetic-token")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://someone:synthetic-password@store.example:9000")
    assert _access("s3://bucket/lake/shimmer/messages/metadata/1.json") == {
        "s3.region": "eu-central-1",
        "client.region": "eu-central-1",
        "s3.endpoint": "https://store.example:9000",
        "s3.path-style-access": "true",
    }
    assert _access("/lake/shimmer/messages/metadata/1.json") == {}


def test_every_table_of_a_whole_lake_has_the_rows_that_sql_counts(whole) -> None:
    catalog = connect(f"{whole.address}/iceberg")
    names = {network for (network,) in catalog.list_namespaces()}
    assert {"shimmer", "iota", "wormhole"} <= names
    for table, rows in whole.wormhole_rows.items():
        assert rows_of(catalog, table, "wormhole") == len(rows), table


def test_spark_reads_the_publication_that_it_is_pinned_to(served, spark) -> None:
    for name, warehouse in (("rest_first", served.first.id), ("rest_latest", "latest")):
        at = f"spark.sql.catalog.{name}"
        spark.conf.set(at, "org.apache.iceberg.spark.SparkCatalog")
        spark.conf.set(f"{at}.type", "rest")
        spark.conf.set(f"{at}.uri", served.uri)
        spark.conf.set(f"{at}.warehouse", str(warehouse))
    assert spark.sql(f"select count(*) from rest_first.{NETWORK}.messages").first()[0] == 4
    listed = {row.tableName for row in spark.sql(f"show tables in rest_latest.{NETWORK}").collect()}
    assert set(TABLES) <= listed
    for table in TABLES:
        counted_there = spark.sql(f"select count(*) from rest_latest.{NETWORK}.{table}").first()[0]
        assert counted_there == counted(served.lake, table)
    with pytest.raises(Exception, match="does not support endpoint"):
        spark.sql(f"drop table rest_latest.{NETWORK}.messages")
    assert rows_of(connect(served.uri), "messages") == counted(served.lake, "messages")


def test_duckdb_reads_the_publication_that_it_is_pinned_to(served, extended_duckdb) -> None:
    page = (ROOT / "docs" / "analysts.md").read_text()
    (lines,) = re.findall(r"\nDuckDB:\n\n```text\n(.*?)```", page, re.DOTALL)

    def answer(warehouse, statement=""):
        there = lines.replace("http://localhost:8042", served.address).replace("'latest'", f"'{warehouse}'")
        return extended_duckdb.answer(there + statement)

    assert answer("latest")["rows"] == [[counted(served.lake, "messages")]]
    assert answer(served.first.id)["rows"] == [[4]]
    assert "this catalog is read-only" in answer("latest", "DROP TABLE permalake.shimmer.messages")["error"]
    assert rows_of(connect(served.uri), "messages") == counted(served.lake, "messages")
