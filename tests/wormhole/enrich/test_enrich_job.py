"""Prices from services and chain details from RPCs through the real job: the synthetic world, its quotes and
chains served by servers of this machine that misbehave."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
from collections import Counter, defaultdict
from decimal import Decimal
from functools import partial

import pytest

from permalake.config import CONFIG_VARIABLE, load_settings
from permalake.net import http
from permalake.pipeline.day_landing import DayLanding
from permalake.wormhole.contracts import WORMHOLE_TABLES
from permalake.wormhole.enrich.asked_prices import AskedPrices
from permalake.wormhole.enrich.attestations import StagedDays
from permalake.wormhole.enrich.chains import Chains
from permalake.wormhole.enrich.collector import AnswerCache
from permalake.wormhole.enrich.enriched_days import enriched
from permalake.wormhole.enrich.price_providers import providers
from permalake.wormhole.enrich.price_service import PriceCache
from permalake.wormhole.enrich.rpcs import opened
from permalake.wormhole.enrich.token_values import PriceSources
from support.chain_world import SOLANA, chains, nft_contract
from support.expected_rows import differences, read
from support.jobs import job
from support.lakes import OpenLake
from support.price_server import PriceServer
from support.rpc_server import RpcServer
from support.wormhole_world import WORLD, configuration

DAYS = (dt.date(1970, 1, 1), dt.date(2024, 3, 12))
TABLES = (
    "token_transfer_details",
    "chain_details",
    "notional_transferred_daily",
    "addresses_daily",
)
# Long enough for an honest answer of a busy machine: what was answered must not be asked for again.
HASTY = http.RetryPolicy(read=2, back_off=0.01, attempts=12, longest_pause=3)
PRICE_RATE, RPC_RATE = 40, 60


@pytest.fixture(scope="module")
def history():
    found = defaultdict(set)
    with gzip.open(WORLD / "price_history.csv.gz", "rt", newline="") as lines:
        for row in csv.DictReader(lines):
            found[row["coingecko_id"]].add(
                (int(dt.datetime.fromisoformat(row["quoted_at"]).timestamp()), row["price_usd"])
            )
    return {coin: sorted(quotes) for coin, quotes in found.items()}


@pytest.fixture(scope="module")
def expected():
    """The expected rows of the days that are built, by table."""
    first, last = map(str, DAYS)
    return {
        table: [row for row in read(WORLD / "expected" / f"{table}.jsonl.gz") if first <= row["date"] <= last]
        for table in (*TABLES, "message_publication", "token_transfer_payload", "nft_transfer_payload")
    }


class World:
    """A lake with the world's events, enriched again and again."""

    def __init__(self, spark, folder, patch):
        self.spark = spark
        self.folder = folder
        self.patch = patch
        patch.setenv(CONFIG_VARIABLE, str(folder / "permalake.toml"))
        patch.setattr(http, "RetryPolicy", lambda: HASTY)

    def configure(self, *sections) -> None:
        (self.folder / "permalake.toml").write_text(configuration(self.folder, *sections))
        self.lake = OpenLake(load_settings())

    def run(self, name):
        days = ["--network", "wormhole", "--start", str(DAYS[0]), "--end", str(DAYS[1])]
        job(name)([*days, "--run-id", "one"], self.spark)
        return self.lake.resume("wormhole", "one")

    def ask_again(self) -> None:
        """All that another run would ask, before it stages anything."""
        attempt, settings = self.lake.resume("wormhole", "one"), load_settings()
        quotes = PriceCache(
            lambda first, last: attempt.staged.rows("token_prices", first, last).scan(),
            None,
            partial(AskedPrices, self.lake.database),
            None,
        )
        answers = AnswerCache(
            lambda first, last: attempt.staged.rows("chain_answers", first, last).scan(),
            None,
            attempt.record.note,
        )
        with opened(settings) as nodes:
            days = DayLanding.of(self.spark, attempt)
            enriched(
                settings,
                days,
                StagedDays(attempt),
                *DAYS,
                sound_before=DAYS[0],
                sources=PriceSources(providers(settings, quotes), None, settings.prices),
                chains=Chains(nodes, answers),
            )

    def rows(self, attempt):
        return {table: attempt.days(self.spark, table).toArrow().to_pylist() for table in TABLES}


@pytest.fixture(scope="module")
def world(spark, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        yield World(spark.newSession(), tmp_path_factory.mktemp("market"), patch)


def wrapped_nfts(details, nfts, nodes):
    """How many NFTs went to an EVM chain of ``nodes`` that is not their own, and became what wraps them."""
    found = {row["row_key"]: row for row in details}
    there = [
        row
        for row in nfts
        if row["target_chain"] in nodes and row["target_chain"] not in (SOLANA, row["origin_chain"])
    ]
    for row in there:
        told = found[row["row_key"]]
        assert told["resulting_token_address"] == nft_contract(row["origin_address"])
        assert told["resulting_token_symbol"] == row["symbol"]
    return len(there)


def moment(text):
    return dt.datetime.fromisoformat(text)


class Opinions:
    """Quotes of a second provider in a file: a minute after each that serves, a tenth above it."""

    def __init__(self, file, expected):
        self.file = file
        self.quotes = defaultdict(list)
        self.wants = {}
        at = {row["row_key"]: moment(row["timestamp"]) for row in expected["message_publication"]}
        for row in expected["token_transfer_payload"]:
            self.wants[row["row_key"]] = (row["origin_chain"], row["origin_address"]), at[row["row_key"]]
        for row in expected["token_transfer_details"]:
            if row["token_price_usd"] is not None:
                price = Decimal(row["token_price_usd"]) * Decimal("1.1")
                quote = moment(row["price_timestamp"]) + dt.timedelta(minutes=1), price
                self.quotes[self.wants[row["row_key"]][0]].append(quote)
        lines = [
            f"{time.isoformat()},{chain},{address},{price:f}"
            for (chain, address), quotes in self.quotes.items()
            for time, price in dict(quotes).items()
        ]
        file.write_text("\n".join(["quoted_at,chain,token_address,price_usd", *lines]))

    def wrong(self, details):
        """The rows whose cross-check or distance is not the one that is worked out here."""
        return [row for row in details if self._told(row) != self._wanted(row)]

    def _told(self, row):
        names = ("check_price_timestamp", "check_price_usd", "check_price_source", "price_distance_seconds")
        return tuple(row[name] for name in names)

    def _wanted(self, row):
        token, at = self.wants[row["row_key"]]
        if row["token_price_usd"] is None:
            return (None,) * 4
        distance = abs(row["price_timestamp"] - at) // dt.timedelta(seconds=1)
        near = [quote for quote in self.quotes[token] if abs(quote[0] - at) <= dt.timedelta(hours=12)]
        if not near:
            return None, None, None, distance
        time, price = min(near, key=lambda quote: (abs(quote[0] - at), quote[0]))
        return time, price.quantize(Decimal(1).scaleb(-18)), "file", distance


@pytest.fixture
def opinions(tmp_path, expected):
    return Opinions(tmp_path / "opinions.csv", expected)


def test_services_and_rpcs_give_the_expected_rows_and_are_asked_once(
    world, history, expected, opinions
) -> None:
    gecko = {coin: quotes for coin, quotes in history.items() if coin != "weth"}
    llama = {"coingecko:weth": history["weth"]}
    nodes = chains(expected, WORLD / "reference")
    with (
        PriceServer(gecko, faulty=0.3, seed=11) as first,
        PriceServer(llama, faulty=0.3, seed=12) as second,
        RpcServer(nodes, faulty=0.15, errors=0.1, seed=13) as rpc,
    ):
        first.slow = second.slow = rpc.slow = 3
        world.configure(
            f'[prices]\nprovider = "coingecko"\nurl = "{first.url}"\nrate_per_second = {PRICE_RATE}',
            '[[prices.fallback]]\nprovider = "defillama"',
            f'url = "{second.url}"\nrate_per_second = {PRICE_RATE}',
            f'[prices.cross_check]\nprovider = "file"\npath = "{opinions.file}"',
            *(
                f'[chains.{number}]\nrpc_url = "{rpc.url}/{number}"\nrate_per_second = {RPC_RATE}'
                for number in nodes
            ),
        )
        world.run("wormhole_ingest")
        found = world.rows(world.run("wormhole_enrich"))
        for table, rows in found.items():
            assert differences(rows, expected[table], WORMHOLE_TABLES[table].key) == [], table
        assert wrapped_nfts(found["chain_details"], expected["nft_transfer_payload"], nodes) >= 2
        sources = {row["price_source"] for row in found["token_transfer_details"]}
        assert {"coingecko", "defillama"} <= sources
        assert opinions.wrong(found["token_transfer_details"]) == []

        for server in (first, second):
            assert 0 < server.busiest() <= PRICE_RATE
            assert len(set(server.answered)) == len(server.answered)
            assert not any("scam" in call[1] or "04132bf4" in call[1] for call in server.calls)
        for number in nodes:
            assert rpc.busiest(number) <= RPC_RATE
            assert {call: count for call, count in Counter(rpc.answered[number]).items() if count > 1} == {}

        calls = len(first.calls), len(second.calls), sum(map(len, rpc.requests.values()))
        world.ask_again()
        assert (len(first.calls), len(second.calls), sum(map(len, rpc.requests.values()))) == calls
