"""Prices from services through the real job: one day of the synthetic world, its quotes served by a server of
this machine that misbehaves."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import importlib.util
from collections import defaultdict
from pathlib import Path

import pytest
from price_server import PriceServer

from permalake.config import CONFIG_VARIABLE, load_settings
from permalake.enrich import http
from permalake.lake import Lake
from permalake.paths import SPARK_JOBS

WORLD = Path(__file__).parents[1] / "data" / "synthetic" / "wormhole"
DAY = dt.date(2024, 3, 11)
PRICED = ("token_transfer_details", "tvl_daily", "notional_transferred_daily")
HASTY = http.Patience(read=0.3, back_off=0.01, attempts=12, longest_pause=3)
RATE = 40


@pytest.fixture(scope="module")
def history():
    found = defaultdict(set)
    with gzip.open(WORLD / "price_history.csv.gz", "rt", newline="") as lines:
        for row in csv.DictReader(lines):
            found[row["coingecko_id"]].add(
                (int(dt.datetime.fromisoformat(row["quoted_at"]).timestamp()), row["price_usd"])
            )
    return {coin: sorted(quotes) for coin, quotes in found.items()}


class World:
    """A lake with the events of one day, enriched again and again."""

    def __init__(self, spark, folder, patch):
        self.spark = spark
        self.folder = folder
        self.patch = patch
        patch.setenv(CONFIG_VARIABLE, str(folder / "permalake.toml"))

    def configure(self, prices):
        (self.folder / "permalake.toml").write_text(
            f"""
            [lake]
            warehouse = "{self.folder}/warehouse"
            [wormhole]
            path = "{WORLD}/input/vaas-{DAY}.jsonl.gz"
            reference = "{WORLD}/reference"
            [prices]
            {prices}
            """
        )
        self.lake = Lake(load_settings())

    def run(self, job):
        self.patch.setattr(http, "Patience", lambda: HASTY)
        spec = importlib.util.spec_from_file_location(job, SPARK_JOBS / f"{job}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        days = ["--network", "wormhole", "--start", str(DAY), "--end", str(DAY)]
        module.main([*days, "--run-id", "one"], self.spark)
        return self.lake.resume("wormhole", "one")

    def rows(self, attempt):
        """Rows of the day without who told the price."""
        found = {}
        for table in PRICED:
            frame = attempt.days(self.spark, table).drop("price_source")
            found[table] = sorted(frame.toArrow().to_pylist(), key=str)
        return found


@pytest.fixture(scope="module")
def world(spark, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        yield World(spark.newSession(), tmp_path_factory.mktemp("market"), patch)


@pytest.fixture(scope="module")
def expected(world):
    """What the provider ``file`` gives for the same quotes."""
    world.configure(f'path = "{WORLD}/price_history.csv.gz"')
    world.run("wormhole_ingest")
    found = world.rows(world.run("wormhole_enrich"))
    assert len([row for row in found[PRICED[0]] if row["notional_usd"] is not None]) > 50
    return found


def service(provider, url):
    return f'provider = "{provider}"\nurl = "{url}"\nrate_per_second = {RATE}'


def test_services_give_what_the_file_gives_and_are_asked_once(world, expected, history):
    gecko = {coin: quotes for coin, quotes in history.items() if coin != "weth"}
    llama = {"coingecko:weth": history["weth"]}
    with PriceServer(gecko, faulty=0.3, seed=11) as first, PriceServer(llama, faulty=0.3, seed=12) as second:
        fallback = f'fallback = [{{provider = "defillama", url = "{second.url}", rate_per_second = {RATE}}}]'
        world.configure(f'provider = "coingecko"\nurl = "{first.url}"\nrate_per_second = {RATE}\n{fallback}')
        attempt = world.run("wormhole_enrich")
        assert world.rows(attempt) == expected
        for server in (first, second):
            assert 0 < server.busiest() <= RATE
            assert len(set(server.answered)) == len(server.answered)
            assert not any("scam" in call[1] or "04132bf4" in call[1] for call in server.calls)
        sources = attempt.days(world.spark, PRICED[0]).select("price_source").distinct().toArrow()
        assert {"coingecko", "defillama"} <= set(sources["price_source"].to_pylist())

        calls = len(first.calls), len(second.calls)
        assert world.rows(world.run("wormhole_enrich")) == expected
        assert (len(first.calls), len(second.calls)) == calls
