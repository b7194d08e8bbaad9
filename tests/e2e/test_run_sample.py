"""The bundled real days from raw bytes to published tables through Airflow and Spark, as users run them."""

from __future__ import annotations

import doctest
import inspect
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from decimal import Decimal
from doctest import ELLIPSIS
from pathlib import Path

import pytest
from google.cloud.bigtable import Client

import permalake as permalake_package
from permalake import python_api
from permalake.config import load_settings
from permalake.config.stores import CassandraSettings
from permalake.paths import JARS, ROOT
from permalake.stores import cassandra
from support.lakes import OpenLake

SAMPLE = ROOT / "include" / "sample"
PERMALAKE = str(Path(sys.executable).parent / "permalake")
DEMO = (sys.executable, "-m", "permalake.local.demo")
IOTA = ("run", "iota", "--date", "2022-09-28")
SYNTHETIC = "date >= '2100-01-01'"
REAL_DAYS, SYNTHETIC_DAYS, SYNTHETIC_IOTA_DAYS = 43, 2, 21


@pytest.fixture(scope="module")
def stores(own_cassandra_server, bigtable_server):
    """Both stores, configured by the environment."""
    return {
        "PERMALAKE_CASSANDRA__CONTACT_POINTS": '["127.0.0.1"]',
        "PERMALAKE_CASSANDRA__PORT": str(own_cassandra_server.port),
        "PERMALAKE_BIGTABLE__PROJECT": "sample",
        "PERMALAKE_BIGTABLE__INSTANCE": "sample",
        "PERMALAKE_BIGTABLE__TABLE": "events",
        "PERMALAKE_BIGTABLE__TABLE_V1": "events_v1",
        "BIGTABLE_EMULATOR_HOST": f"127.0.0.1:{bigtable_server.port}",
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the lake is."""
    return tmp_path_factory.mktemp("sample")


@pytest.fixture(scope="module")
def environment(folder, stores):
    """A home and a lake of their own for ``make demo`` and the command line."""
    (folder / "home").mkdir()
    (folder / "home" / "jars").symlink_to(JARS)
    return {
        **os.environ,
        **stores,
        "PERMALAKE_HOME": str(folder / "home"),
        "PERMALAKE_CONFIG": str(ROOT / "permalake.toml"),
        "PERMALAKE_LAKE__WAREHOUSE": str(folder / "warehouse"),
        "PERMALAKE_SPARK_MASTER": "local[2]",
        "PERMALAKE_SPARK_DRIVER_MEMORY": "2g",
    }


@pytest.fixture(scope="module")
def permalake(folder, environment):
    """Calls the command line; returns exit code, output and errors."""

    def call(*arguments, command=(PERMALAKE,)):
        done = subprocess.run(
            [*command, *arguments], env=environment, cwd=folder, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout, done.stderr

    return call


@pytest.fixture(scope="module")
def built(permalake):
    """``make demo`` has run both DAGs through Airflow; what it printed, by network, and how it ended."""
    code, out, err = permalake(command=DEMO)
    assert code == 0, out + err
    iota, wormhole = out.split("wormhole_daily wormhole", maxsplit=1)
    real, synthetic = iota.split("iota_daily synthetic", maxsplit=1)
    return {"iota": real, "synthetic": synthetic, "wormhole": wormhole.split("\n\n")[0], "all": out}


@pytest.fixture(scope="module")
def rows(built, folder):
    """Rows of a query in this process, as the command line writes them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PERMALAKE_LAKE__WAREHOUSE", str(folder / "warehouse"))
        lake = OpenLake(load_settings(ROOT / "permalake.toml"))
    return lambda sql: json.loads(json.dumps(lake.query(sql).to_pylist(), default=str))


def test_the_two_milestones_have_their_known_figures(permalake, built) -> None:
    sql = (
        "select milestone_index, message_count, transaction_count, transferred_tokens "
        "from shimmer.ms_analytics order by 1"
    )
    code, out, err = permalake("query", sql, "--format", "json")
    assert code == 0, err
    assert [tuple(row.values()) for row in json.loads(out)] == [
        (17339, 38, 5, 96847628508),
        (17340, 43, 7, 891030800),
    ]


def test_all_vaas_are_published_on_their_days(rows) -> None:
    sql = "select count(*) as n, count(distinct date) as days from wormhole.message_publication"
    assert rows(f"{sql} where not {SYNTHETIC}") == [{"n": 127, "days": REAL_DAYS}]


def test_the_examples_of_the_python_api_run(built, folder, monkeypatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PERMALAKE_CONFIG", str(ROOT / "permalake.toml"))
    monkeypatch.setenv("PERMALAKE_LAKE__WAREHOUSE", str(folder / "warehouse"))
    ran = doctest.testmod(python_api, extraglobs={"lake": permalake_package.open()}, optionflags=ELLIPSIS)
    assert ran.failed == 0
    public = [
        function
        for kind in (python_api.Lake, python_api.LakeRows)
        for name, function in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    ]
    assert ran.attempted >= len(public) > 0
    assert all(">>>" in (function.__doc__ or "") for function in public), "each shows an example"


def test_every_step_showed_its_progress(built) -> None:
    for step in ("ingest_decode", "analytics", "audit", "publish", "serve"):
        assert built["iota"].count(f"  {step} ") == 2, step
    assert "messages 81" in built["iota"]
    assert "1 day" in built["iota"].splitlines()[-1]
    assert f"{SYNTHETIC_IOTA_DAYS} days" in built["synthetic"].splitlines()[-1]
    assert f"{REAL_DAYS + SYNTHETIC_DAYS} days" in built["wormhole"].splitlines()[-1]


def test_airflow_shows_the_runs_with_their_logs(built, folder) -> None:
    """In the database and the folder of logs of ``make up``; its scheduler leaves them alone."""
    home = folder / "home" / "airflow"
    with closing(sqlite3.connect(home / "airflow.db")) as connection:
        runs = connection.execute("select dag_id, state, run_id from dag_run order by 1").fetchall()
        tasks = connection.execute("select dag_id, task_id, state from task_instance").fetchall()
        paused = connection.execute("select distinct is_paused from dag").fetchall()
    dags = ["iota_daily", "iota_daily", "wormhole_daily"]
    assert [run[:2] for run in runs] == [(dag, "success") for dag in dags]
    assert {state for _, _, state in tasks} == {"success"}
    assert {task for dag, task, _ in tasks if dag == "iota_daily"} >= {"ingest_decode", "publish", "serve"}
    assert paused == [(1,)]
    for dag, _, run_id in runs:
        for task in {task for own, task, _ in tasks if own == dag}:
            log = home / "logs" / f"dag_id={dag}" / f"run_id={run_id}" / f"task_id={task}" / "attempt=1.log"
            assert log.stat().st_size, log
    submit = min(home.glob("logs/dag_id=iota_daily/*/task_id=ingest_decode/attempt=1.log")).read_text()
    assert "milestones 17339 to 17340" in submit


def test_the_status_knows_when_the_lake_and_each_store_got_a_day(permalake, built) -> None:
    code, out, err = permalake("status", "--format", "json")
    assert code == 0, err
    every_day = json.loads(out)
    for network, store, days in (
        ("shimmer", "cassandra", 1),
        ("synthetic", "cassandra", SYNTHETIC_IOTA_DAYS),
        ("wormhole", "bigtable", REAL_DAYS + SYNTHETIC_DAYS),
    ):
        listed = [day for day in every_day if day["network"] == network]
        assert len(listed) == days
        for day in listed:
            assert day["audited"] == "passed"
            assert day["stores"].keys() == {store}
            assert day["stores"][store] >= day["published"] > ""


def test_the_stores_have_the_rows_that_the_lake_has(stores, monkeypatch, rows) -> None:
    server = CassandraSettings(contact_points=("127.0.0.1",), port=stores["PERMALAKE_CASSANDRA__PORT"])
    with cassandra.session(server) as session:
        for table in ("messages", "parents", "transactions", "basic_outputs", "ms_analytics"):
            lake = rows(f"select count(*) as n from shimmer.{table}")
            assert session.execute(f"select count(*) from shimmer.{table}").one()[0] == lake[0]["n"] > 0, (
                table
            )
    monkeypatch.setenv("BIGTABLE_EMULATOR_HOST", stores["BIGTABLE_EMULATOR_HOST"])
    events = Client(project="sample").instance("sample").table("events").read_rows()
    lake = rows("select row_key from wormhole.message_publication")
    assert {row.row_key.decode() for row in events} == {row["row_key"] for row in lake}


def test_a_second_run_changes_nothing_and_says_so(permalake, rows) -> None:
    before = rows("select * from shimmer.messages order by milestone_index, white_flag_index")
    code, out, _ = permalake(command=DEMO)
    assert code == 0
    assert out.count("published and unchanged") == 3
    code, out, _ = permalake(*IOTA)
    assert code == 0
    assert "published and unchanged" in out
    assert rows("select * from shimmer.messages order by milestone_index, white_flag_index") == before


def test_a_day_without_rows_ends_well_and_says_so(permalake, built) -> None:
    code, out, err = permalake("run", "iota", "--date", "2022-09-27")
    assert code == 0, out + err
    assert "no rows" in out.splitlines()[-1]
    run = json.loads(permalake("status", "--network", "shimmer", "--format", "json")[1])[0]["run_id"]
    code, out, err = permalake("status", "--run", run, "--format", "json")
    assert code == 0, err
    steps = {row["key"]["step"]: row["result"]["state"] for row in json.loads(out)}
    assert steps.keys() >= {"ingest_decode", "analytics", "audit", "publish"}
    assert set(steps.values()) == {"done"}


def test_a_step_of_a_day_never_built_is_refused(permalake, built) -> None:
    code, _, err = permalake("run", "wormhole", "--date", "2019-01-01", "--only", "enrich")
    assert code == 1
    assert "has not been built; run it without --only" in err
    assert err.count("\n") == 1


def test_real_transfers_have_what_wormholescan_showed_of_them(rows) -> None:
    """Value, sender and redemption of each, as the bundled operations report them."""
    shown = {}
    for line in (SAMPLE / "wormhole_operations" / "wormholescan_operations.jsonl").read_text().splitlines():
        operation = json.loads(line)
        # One has a value and no payload, another one a value and a payload that is no transfer of a token.
        payload = operation["content"].get("payload", {"tokenAddress": "unknown"})
        if payload.get("tokenAddress") and operation.get("data", {}).get("usdAmount"):
            chain, emitter, sequence = operation["id"].split("/")
            shown[f"{chain}:{emitter}:{int(sequence):016}"] = operation
    found = rows(
        "select row_key, amount, notional_usd, sender_address, initiating_tx_id, r.target_tx_id, r.status "
        "from wormhole.token_transfer_details join wormhole.message_publication using (row_key) "
        "join wormhole.chain_details using (row_key) left join wormhole.redemptions r using (row_key) "
        "where notional_usd is not null and token_transfer_details.date < '2100-01-01'"
    )
    assert {row["row_key"] for row in found} == shown.keys()
    assert len(found) == 7
    for row in found:
        operation = shown[row["row_key"]]
        source, target = operation["sourceChain"], operation["targetChain"]
        assert row["amount"] == operation["data"]["tokenAmount"]
        # The service cuts what it shows to eight places.
        missing = Decimal(row["notional_usd"]) - Decimal(operation["data"]["usdAmount"])
        assert 0 <= missing <= Decimal("0.00000001")
        assert row["sender_address"] == source["from"]
        assert row["initiating_tx_id"] == source["transaction"]["txHash"]
        assert (row["target_tx_id"], row["status"]) == (target["transaction"]["txHash"], target["status"])


def test_a_receipt_on_sui_tells_a_redemption(rows) -> None:
    sql = "select target_chain, redeemed_at from wormhole.redemptions where row_key like '%:0000000000610687'"
    assert rows(sql) == [{"target_chain": 21, "redeemed_at": "2024-01-24 14:45:25+00:00"}]


def test_real_days_know_nothing_of_synthetic_ones(rows) -> None:
    for table, symbol in (("attested_tokens", "symbol"), ("token_transfer_details", "origin_symbol")):
        sql = f"select count(*) as n, count(*) filter ({symbol} like 'SYN%') as made_up from wormhole.{table}"
        found = rows(f"{sql} where not {SYNTHETIC}")
        assert found[0]["n"] > 10, table
        assert found[0]["made_up"] == 0, table
        assert rows(f"{sql} where {SYNTHETIC}")[0]["made_up"] > 0, table
    token = "concat(origin_chain, origin_address)"
    moved = f"select {token} from wormhole.token_transfer_details where not {SYNTHETIC}"
    sql = f"select count(*) as n from wormhole.tvl_daily where not {SYNTHETIC} and origin_chain is not null"
    assert rows(sql)[0]["n"] > 10
    assert rows(f"{sql} and {token} not in ({moved})") == [{"n": 0}]


def test_synthetic_days_have_values(rows) -> None:
    synthetic = "from wormhole.{} where " + SYNTHETIC
    details = synthetic.format("token_transfer_details")
    priced = rows(
        f"select count(*) as n, count(notional_usd) as priced, min(origin_symbol) as first {details}",
    )
    assert priced[0]["n"] > 150
    assert priced[0]["priced"] > 0.8 * priced[0]["n"]
    assert rows(f"select distinct left(origin_symbol, 3) as s {details} and origin_symbol is not null") == [
        {"s": "SYN"}
    ]
    receivers = synthetic.format("chain_details")
    assert rows(f"select count(receiver_address) > 150 as known {receivers}") == [{"known": True}]
    held = "select notional_usd > 0 as positive from wormhole.tvl_totals"
    everywhere = "date = '2100-01-02' and origin_chain is null"
    assert rows(f"{held} where {everywhere}") == [{"positive": True}]
    sets = f"select distinct guardian_set_index as s {synthetic.format('message_publication')} order by 1"
    assert rows(sets) == [{"s": 1000}, {"s": 1001}]
    origins = f"select distinct left(origin, 14) as o {synthetic.format('quarantine')}"
    assert rows(origins) == [{"o": "synthetic-2100"}]


def test_the_synthetic_network_has_weeks_with_a_rhythm(rows) -> None:
    """Weekends are quiet, every kind of output and of conflict is there, and no row is of another network."""
    sql = (
        "select dayofweek(date) in (0, 6) as weekend, sum(message_count) / count(distinct date) as messages, "
        "count(distinct date) as days from synthetic.ms_analytics group by 1 order by 1"
    )
    working, weekend = rows(sql)
    assert (working["days"], weekend["days"]) == (15, 6)
    assert weekend["messages"] < 0.8 * working["messages"]
    for table in ("alias_outputs", "foundry_outputs", "nft_outputs", "native_tokens", "tags"):
        assert rows(f"select count(*) > 20 as some from synthetic.{table}") == [{"some": True}], table
    reasons = "select count(distinct conflict_reason) > 3 as many from synthetic.conflicting_transactions"
    assert rows(reasons) == [{"many": True}]
    assert rows("select count(*) as n from synthetic.milestones where date < '2100-01-01'") == [{"n": 0}]
    assert rows("select count(*) as n from shimmer.milestones") == [{"n": 2}]


def test_it_is_told_as_synthetic(built) -> None:
    assert "synthetic: 21 days published (synthetic 2100-01-01..2100-01-21)" in built["all"]
    assert built["all"].count("SYNTHETIC: ") == 2
