"""The synthetic world through a faulty explorer and the real jobs: the rows that its files give."""

from __future__ import annotations

import gzip
import json

import pytest

from permalake.config import CONFIG_VARIABLE, load_settings
from permalake.net import http
from permalake.wormhole.contracts import WORMHOLE_TABLES
from support.expected_rows import differences, read
from support.explorer_server import ExplorerServer
from support.jobs import job
from support.lakes import OpenLake, pass_audit
from support.wormhole_world import BEGIN, END, WORLD, digested

RATE = 200
HASTY = http.RetryPolicy(read=0.3, whole=1.0, back_off=0.01, attempts=12, longest_pause=3)
EVENTS = (
    "message_publication",
    "quorum_state",
    "token_transfer_payload",
    "asset_meta_payload",
    "nft_transfer_payload",
    "messages_daily",
    "quarantine",
)


def documents():
    for file in sorted((WORLD / "input").glob("vaas-*.jsonl.gz")):
        for line in gzip.decompress(file.read_bytes()).splitlines():
            yield json.loads(line)


def operations(vaas):
    """Operations of half of the VAAs, which the list of VAAs then leaves out of account."""
    for number, one in enumerate(vaas):
        if one.get("txHash"):
            yield {
                "id": one["id"],
                **({"vaa": {"raw": one["vaa"]}} if number % 2 else {}),
                "sourceChain": {
                    "timestamp": one["timestamp"],
                    "transaction": {"txHash": one["txHash"]},
                    "from": f"sender of {one['id']}",
                },
            }


@pytest.fixture(scope="module")
def built(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("live")
    vaas = list(documents())
    with (
        ExplorerServer(vaas, list(operations(vaas)), faulty=0.25, seed=3) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        server.largest["vaas"] = 100
        (folder / "permalake.toml").write_text(
            f"""
            [lake]
            warehouse = "{folder}/warehouse"
            [wormhole]
            source = "wormholescan"
            url = "{server.url}"
            rate_per_second = {RATE}
            reference = "{WORLD}/reference"
            [prices]
            path = "{WORLD}/price_history.csv.gz"
            """
        )
        patch.setenv(CONFIG_VARIABLE, str(folder / "permalake.toml"))
        patch.setattr(http, "RetryPolicy", lambda: HASTY)
        session = spark.newSession()
        rows = published(session, BEGIN, END)
        assert 0 < server.busiest() <= RATE
        asked = len(server.calls)
        again = published(session, END, END)
        assert len(server.calls) == asked, "the second run of a built day asks for nothing"
    return rows, again


def published(spark, start, end):
    """Rows by table after a build of these days, without the clocks."""
    days = ["--network", "wormhole", "--start", str(start), "--end", str(end), "--run-id", f"run {start}"]
    job("wormhole_ingest")(days, spark)
    lake = OpenLake(load_settings())
    attempt = lake.resume("wormhole", f"run {start}")
    lake.builds.publish(pass_audit(attempt))
    tables = {}
    for name in (*EVENTS, "chain_answers"):
        contract = WORMHOLE_TABLES[name]
        columns = ", ".join(column for column in contract.names if column not in contract.first_value)
        tables[name] = lake.query(f"select {columns} from wormhole.{name} order by all").to_pylist()
    return tables


@pytest.mark.parametrize("table", EVENTS)
def test_the_rows_are_those_of_the_files(built, table) -> None:
    rows, again = built
    expected = read(WORLD / "expected" / f"{table}.jsonl.gz")
    key = ("raw_sha256",) if table == "quarantine" else WORMHOLE_TABLES[table].key
    left = ["source", "origin"] if table == "quarantine" else []
    wanted = [{**row, "_dc": [*row.get("_dc", ()), *left]} for row in expected]
    assert differences([digested(row) for row in rows[table]], wanted, key) == []
    assert again[table] == rows[table]


def test_operations_tell_senders_of_bridge_messages(built) -> None:
    rows, _ = built
    told = {
        one["subject"]: one["address"]
        for one in rows["chain_answers"]
        if one["question"] == "reported_sender"
    }
    bridged = {
        row["row_key"] for name in ("token_transfer_payload", "nft_transfer_payload") for row in rows[name]
    }
    assert len(told) > 100
    assert set(told) <= bridged
    for key, sender in told.items():
        chain, emitter, sequence = key.split(":")
        assert sender == f"sender of {chain}/{emitter}/{int(sequence)}"
