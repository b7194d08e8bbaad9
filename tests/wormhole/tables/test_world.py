"""A synthetic world of VAAs, made by other code than this project's, through the real jobs and a real lake.

Built once as one range and once in two: the same rows. What only RPCs of the chains tell (senders, wrapped
assets, owners of Solana token accounts, tokens neither attested nor listed) is left out.
"""

from __future__ import annotations

import csv
import datetime as dt

import pytest

from permalake.config import CONFIG_VARIABLE, load_settings
from permalake.wormhole.contracts import WORMHOLE_TABLES
from support.expected_rows import differences, read
from support.jobs import job
from support.lakes import OpenLake, pass_audit
from support.wormhole_world import BEGIN, END, PRICES, WORLD, configuration, digested

HALF = dt.date(2024, 3, 10)
SOLANA = 1
# No RPC is asked here, and the input holds neither observations, operations nor messages of applications.
EMPTY = {
    *("chain_answers", "observations", "redemptions", "token_custody"),
    *("application_transfers", "application_transfer_details", "relayer_deliveries"),
}


def told(table):
    """What this world shall give."""
    return WORLD / "expected" / f"{table}.jsonl.gz"


def build(spark, settings, start, end):
    lake, run_id = OpenLake(settings), f"run-{start}"
    arguments = ["--network", "wormhole", "--start", str(start), "--end", str(end), "--run-id", run_id]
    for name in ("wormhole_ingest", "wormhole_enrich"):
        job(name)(arguments, spark)
    attempt = lake.resume("wormhole", run_id)
    lake.builds.publish(pass_audit(attempt))
    job("carry")(arguments, spark)
    return lake


def rows_of(lake):
    """All published rows by table, without the clocks, in a fixed order."""
    tables = {}
    for name, contract in WORMHOLE_TABLES.items():
        columns = [column for column in contract.names if column not in contract.first_value]
        found = lake.query(f"select {', '.join(columns)} from wormhole.{name} order by all").to_pylist()
        tables[name] = found
    return tables


@pytest.fixture(scope="module")
def built(spark, tmp_path_factory):
    def lake_of(*ranges):
        folder = tmp_path_factory.mktemp("world")
        (folder / "permalake.toml").write_text(configuration(folder, PRICES))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(CONFIG_VARIABLE, str(folder / "permalake.toml"))
            settings = load_settings()
            return [rows_of(build(spark.newSession(), settings, *days)) for days in ranges][-1]

    halves = ((BEGIN, HALF), (HALF + dt.timedelta(days=1), END))
    return {"one": lake_of((BEGIN, END)), "two": lake_of(*halves)}


@pytest.mark.parametrize("table", sorted(set(WORMHOLE_TABLES) - EMPTY))
def test_one_range_or_two_give_the_same_rows(built, table) -> None:
    assert built["one"][table]
    assert built["one"][table] == built["two"][table]


@pytest.mark.parametrize("table", [name for name in WORMHOLE_TABLES if told(name).exists()])
def test_the_rows_are_the_expected_ones(built, table) -> None:
    expected = read(told(table))
    key = ("raw_sha256",) if table == "quarantine" else WORMHOLE_TABLES[table].key
    actual = [digested(row) for row in built["one"][table]]
    assert differences(actual, untold(table, expected), key) == []


def test_the_latest_attestations_are_carried_from_day_to_day(built) -> None:
    attested, days = {}, {row["date"].isoformat() for row in built["one"]["message_publication"]}
    home = [
        row
        for row in read(told("asset_meta_payload"))
        if row["row_key"].split(":")[0] == str(row["token_chain"])
    ]
    times = {row["row_key"]: row["timestamp"] for row in read(told("message_publication"))}
    for day in sorted(days):
        for row in sorted(home, key=lambda row: (times[row["row_key"]], row["row_key"])):
            if row["date"] <= day:
                attested[day, row["token_chain"], row["token_address"]] = row
    found = {
        (row["date"].isoformat(), row["origin_chain"], row["origin_address"]): row
        for row in built["one"]["attested_tokens"]
    }
    assert found.keys() == attested.keys()
    assert len(found) > 20
    for at, row in attested.items():
        assert all(found[at][name] == row[name] for name in ("row_key", "decimals", "symbol", "name"))


def test_governance_is_decoded_for_readers(built) -> None:
    keys = {
        row["row_key"]
        for row in read(told("message_publication"))
        if row["row_key"].startswith(f"1:{4:064x}:")
    }
    rows = built["one"]["governance_actions"]
    assert rows
    assert {row["row_key"] for row in rows} <= keys
    assert all(row["module"] and row["target_chain"] >= 0 for row in rows)


def untold(table, expected):
    """The expected rows, less what no document, list or attestation tells."""
    told = told_tokens()
    routes = {}
    for payload in ("token_transfer_payload", "nft_transfer_payload"):
        for row in read(WORLD / "expected" / f"{payload}.jsonl.gz"):
            routes[row["row_key"]] = row
    return [{**row, **_left_out(table, row, routes.get(row.get("row_key"), row), told)} for row in expected]


def _left_out(table, row, route, told):
    left = list(row.get("_dc", ()))
    token_untold = (route.get("origin_chain"), route.get("origin_address")) not in told
    if table == "chain_details":
        left += ["sender_address"]
        if route.get("target_chain") == SOLANA:
            left += ["receiver_address"]
        if route.get("origin_chain") != route.get("target_chain"):
            left += ["resulting_token_address", "resulting_token_symbol", "resulting_token_name"]
        elif token_untold:
            left += ["resulting_token_symbol", "resulting_token_name"]
    if table == "addresses_daily" and row["target_chain"] == SOLANA:
        left += ["addresses"]
    if token_untold and table in {"token_transfer_details", "notional_transferred_daily"}:
        left += ["amount", "notional_usd", "symbol", "origin_symbol", "origin_name"]
    return {"_dc": left, "_opt": row.get("_opt") or (token_untold and table == "tvl_daily")}


def told_tokens():
    with (WORLD / "reference" / "token_list.csv").open(newline="") as lines:
        told = {(int(row["chain"]), row["token_address"]) for row in csv.DictReader(lines)}
    for row in read(WORLD / "expected" / "asset_meta_payload.jsonl.gz"):
        if row["row_key"].split(":")[0] == str(row["token_chain"]):
            told.add((row["token_chain"], row["token_address"]))
    return told
