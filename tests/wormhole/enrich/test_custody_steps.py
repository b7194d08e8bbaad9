"""Custody through the real jobs: ``carry`` asks for its days, a run with ``--only enrich`` fills in."""

from __future__ import annotations

import datetime as dt
from decimal import Context

from permalake.config import CONFIG_VARIABLE, load_settings
from permalake.net import http
from permalake.wormhole.reference import load_reference
from support.jobs import job
from support.lakes import OpenLake, pass_audit
from support.rpc_server import EvmChain, RpcServer
from support.wormhole_world import PRICES, WORLD, configuration

DAYS = (dt.date(2024, 3, 11), dt.date(2024, 3, 12))
HASTY = http.RetryPolicy(read=2, back_off=0.01, attempts=12, longest_pause=3)
EXACT = Context(prec=60)
COMPARED = "SELECT * FROM wormhole.tvl_compared WHERE origin_chain = 2 ORDER BY date, origin_address"


def test_carry_asks_the_chains_and_a_run_that_fills_in_asks_for_the_rest(
    spark, tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv(CONFIG_VARIABLE, str(tmp_path / "permalake.toml"))
    monkeypatch.setattr(http, "RetryPolicy", lambda: HASTY)
    told = load_reference(WORLD / "reference").chains[2]
    chain = EvmChain(told.core, f"0x{told.token_bridge[24:]}")
    days = ["--network", "wormhole", "--start", str(DAYS[0]), "--end", str(DAYS[1])]
    configure(tmp_path)
    lake = OpenLake(load_settings())
    for name in ("wormhole_ingest", "wormhole_enrich"):
        job(name)([*days, "--run-id", "one"], spark)
    lake.builds.publish(pass_audit(lake.resume("wormhole", "one")))

    with RpcServer({2: chain}, faulty=0.05, errors=0.05, seed=2) as server:
        configure(tmp_path, server)
        lake.leave()
        chain.oldest_state = (end_of(DAYS[1]) - chain.first) // chain.every - 100
        chain.held, chain.tokens = Numbered(), Everywhere()
        job("carry")([*days, "--run-id", "one"], spark)
        rows = lake.query(COMPARED).to_pylist()
        assert {row["date"]: row["status"] for row in rows} == {DAYS[0]: "unknown", DAYS[1]: "known"}
        asked = sum(map(len, server.answered.values()))
        job("carry")([*days, "--run-id", "one"], spark)
        assert sum(map(len, server.answered.values())) == asked

        chain.oldest_state = 0
        server.answered.clear()
        job("wormhole_enrich")([*days, "--run-id", "two"], spark)
        balances = [call for call in server.answered[2] if "70a08231" in call]
    rows = lake.query(COMPARED).to_pylist()
    assert len(balances) == sum(row["date"] == DAYS[0] for row in rows) == 3
    assert {row["status"] for row in rows} == {"known"}
    for row in rows:
        assert row["custody_amount"] == int(row["origin_address"][-2:], 16)
        assert row["difference"] == EXACT.subtract(row["custody_amount"], row["flow_amount"])


class Numbered(dict):
    """Of every token as many as the last byte of its address, from the first block on."""

    def __getitem__(self, token):
        return {1: int(token[-2:], 16) * 10**6}

    def get(self, token, default=None):
        return self[token]


class Everywhere(dict):
    """The same token at every address."""

    def __contains__(self, token):
        return True

    def __missing__(self, token):
        return ("T", "Token", 6)


def end_of(day):
    return int(dt.datetime.combine(day + dt.timedelta(days=1), dt.time(), dt.UTC).timestamp())


def configure(folder, server=None) -> None:
    chains = f'[chains.2]\nrpc_url = "{server.url}/2"\nrate_per_second = 500' if server else ""
    (folder / "permalake.toml").write_text(configuration(folder, PRICES, chains))
