"""``/api/analytics/v1``: pages and exports of any analytics table."""

from __future__ import annotations

import csv
import io
import resource
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient

from permalake.api.analytics import _KINDS, _filters
from permalake.api.app import create_app
from permalake.api.export import FORMATS, encoded
from permalake.config import Settings
from permalake.domains import DOMAINS
from permalake.iota.contracts import IOTA_TABLES
from permalake.web.problems import ProblemError
from permalake.web.table_pages import ListedTable
from permalake.wormhole.contracts import WORMHOLE_TABLES
from support import lakes
from support.lakes import OpenLake, pass_audit, put

NETWORKS = {"shimmer": {"protocol": "stardust", "bech32_hrp": "smr", "path": "."}}
BASE = "/api/analytics/v1"
DAYS = 5
PER_DAY = 40
FIRST = date(2022, 9, 28)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("analytics") / "lake"
    settings = Settings(lake={"warehouse": str(folder)}, networks=NETWORKS)
    lake = OpenLake(settings)
    for number in range(DAYS):
        day = FIRST + timedelta(number)
        attempt = lake.begin("shimmer", day, day, f"run{number}")
        rows = [
            lakes.analytics(day, number * PER_DAY + index, index)[0] | {"transferred_tokens": 2**62}
            for index in range(PER_DAY)
        ]
        put(settings, attempt, "ms_analytics", rows)
        put(
            settings,
            attempt,
            "address_analytics",
            [
                {
                    "address": f"smr1qqqqqq{who}",
                    "milestone_index": 1,
                    "sent_tokens": 1,
                    "recv_tokens": 2,
                    "date": day,
                }
                for who in "xyz"
            ],
        )
        lake.builds.publish(pass_audit(attempt))
    with TestClient(create_app(settings)) as client:
        yield client


def pages(client, path, size):
    items, cursor = [], ""
    while True:
        page = client.get(f"{BASE}/{path}pageSize={size}{cursor and f'&cursor={cursor}'}").json()
        items += page["items"]
        if "cursor" not in page:
            return items
        cursor = page["cursor"]


@pytest.mark.parametrize("size", [7, 1000])
@pytest.mark.parametrize("sort", ["newest", "oldest"])
def test_pages_give_every_row_once(client, size, sort) -> None:
    items = pages(client, f"shimmer/ms_analytics?sort={sort}&", size)
    assert sorted(item["milestone_index"] for item in items) == list(range(DAYS * PER_DAY))
    days = [item["date"] for item in items]
    assert days == sorted(days, reverse=sort == "newest")


def test_dates_and_key_columns_filter(client) -> None:
    day = FIRST + timedelta(1)
    items = client.get(f"{BASE}/shimmer/ms_analytics?start={day}&end={day}").json()["items"]
    assert {item["date"] for item in items} == {day.isoformat()}
    one = client.get(f"{BASE}/shimmer/ms_analytics?milestone_index=7").json()["items"]
    assert [item["milestone_index"] for item in one] == [7]
    assert one[0]["transferred_tokens"] == 2**62


def test_a_table_of_every_address_is_read_by_address(client) -> None:
    assert client.get(f"{BASE}/shimmer/address_analytics").status_code == 400
    items = client.get(f"{BASE}/shimmer/address_analytics?address=smr1qqqqqqx").json()["items"]
    assert len(items) == DAYS


@pytest.mark.parametrize(
    ("path", "status", "word"),
    [
        ("nosuch/ms_analytics", 404, "nosuch"),
        ("shimmer/messages", 404, "messages"),
        ("shimmer/ms_analytics?nosuch=1", 400, "nosuch"),
        ("shimmer/ms_analytics?milestone_index=x", 400, "milestone_index"),
        ("shimmer/ms_analytics?milestone_index=2147483648", 400, "not a value of type int"),
        ("shimmer/ledger_outputs?kind=dust", 400, "one of basic"),
        ("shimmer/top_tags?rank=0", 400, "at least 1"),
        ("shimmer/ms_analytics?start=x", 400, "start"),
        ("shimmer/ms_analytics?format=xml", 400, "format"),
        ("shimmer/quarantine?format=csv&raw=xyz", 400, "raw: not a value of type binary"),
        ("shimmer/quarantine?format=csv&raw=\u00e9", 400, "raw: not a value of type binary"),
    ],
)
def test_what_is_wrong_is_named(client, path, status, word) -> None:
    answer = client.get(f"{BASE}/{path}")
    assert answer.status_code == status
    assert word in answer.json()["detail"]


def test_a_file_is_filtered_by_times_and_bytes(client) -> None:
    assert client.get(f"{BASE}/shimmer/quarantine?format=csv&raw=0xFF").status_code == 200
    quotes = ListedTable.of_table(WORMHOLE_TABLES["token_prices"])
    moment = {"quote_time": "2024-01-01T12:00:00+01:00"}
    assert _filters(quotes, moment) == {"quote_time": datetime(2024, 1, 1, 11, tzinfo=UTC)}
    with pytest.raises(ProblemError, match="quote_time: not a value of type timestamptz"):
        _filters(quotes, {"quote_time": "yesterday"})


def test_every_column_that_filters_has_a_type_of_values() -> None:
    for domain in DOMAINS:
        listed = [
            *(ListedTable.of_table(table) for table in domain.tables.values()),
            *(ListedTable.of_view(view) for view in domain.views),
        ]
        kinds = {table.column(name).type for table in listed for name in table.key}
        assert kinds <= _KINDS.keys()


def test_exports_hold_the_same_rows_in_every_format(client) -> None:
    path = f"{BASE}/shimmer/ms_analytics"
    expected = pages(client, "shimmer/ms_analytics?sort=oldest&", 1000)
    text = client.get(path, headers={"Accept": "text/csv"})
    assert text.headers["content-type"].startswith("text/csv")
    assert [int(row["milestone_index"]) for row in csv.DictReader(io.StringIO(text.text))] == [
        item["milestone_index"] for item in expected
    ]
    parquet = pq.read_table(io.BytesIO(client.get(f"{path}?format=parquet").content))
    arrow = pa.ipc.open_stream(client.get(f"{path}?format=arrow").content).read_all()
    assert parquet.equals(arrow)
    assert [{**row, "date": row["date"].isoformat()} for row in arrow.to_pylist()] == expected
    by_accept = client.get(path, headers={"Accept": FORMATS["arrow"][0]})
    assert pa.ipc.open_stream(by_accept.content).read_all().equals(arrow)


def test_an_export_without_rows_has_a_header(client) -> None:
    answer = client.get(f"{BASE}/shimmer/ms_analytics?format=csv&start=2030-01-01")
    assert answer.text == ",".join(IOTA_TABLES["ms_analytics"].names) + "\n"
    parquet = client.get(f"{BASE}/shimmer/ms_analytics?format=parquet&start=2030-01-01")
    assert pq.read_table(io.BytesIO(parquet.content)).num_rows == 0


def test_slots_are_free_again_after_exports(client) -> None:
    for _ in range(5):
        assert client.get(f"{BASE}/shimmer/ms_analytics?format=csv").status_code == 200


def test_the_index_lists_tables_with_their_dates(client) -> None:
    found = {one["table"]: one for one in client.get(f"{BASE}/").json()["tables"]}
    assert found["ms_analytics"]["start"] == FIRST.isoformat()
    assert found["ms_analytics"]["end"] == (FIRST + timedelta(DAYS - 1)).isoformat()
    assert found["ms_analytics"]["real"] == {name: found["ms_analytics"][name] for name in ("start", "end")}
    assert found["ms_analytics"]["synthetic"] is None
    assert found["address_analytics"]["required"] == ["address"]


@pytest.mark.parametrize("form", list(FORMATS))
def test_an_export_of_any_length_needs_the_memory_of_a_row_group(form) -> None:
    schema = pa.schema([("n", pa.int64()), ("text", pa.string())])
    batch = pa.record_batch(
        [pa.array(range(10_000), pa.int64()), pa.array(["x" * 200] * 10_000)], schema=schema
    )
    size = batch.nbytes

    def batches(count):
        for _ in range(count):
            yield batch

    def read(count):
        return sum(len(chunk) for chunk in encoded(form, schema, batches(count)))

    read(5)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    total = read(60)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    # 60 batches are 125 MB in memory; what they grow by must not depend on how many they are.
    assert total > 100_000
    assert grown < 20 * size
