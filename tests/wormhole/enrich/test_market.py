"""Prices from a service behind the lake's cache: what is asked, what is kept, what is remembered."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import replace
from decimal import Decimal
from functools import partial
from types import SimpleNamespace

import pyarrow as pa
import pytest

from permalake.config import Settings
from permalake.config.lake import LakeSettings
from permalake.config.networks import WormholeSettings
from permalake.config.services import PricesSettings
from permalake.net.http import RetryPolicy, Service
from permalake.net.refusals import Refusals
from permalake.pipeline.day_landing import DayLanding
from permalake.pipeline.side_rows import append_new
from permalake.wormhole.contracts.tables import TOKEN_PRICES
from permalake.wormhole.enrich.asked_prices import AskedPrices
from permalake.wormhole.enrich.price_providers import priced
from permalake.wormhole.enrich.price_service import CachedPriceService, PriceCache
from permalake.wormhole.enrich.providers.coingecko import CoinGecko
from permalake.wormhole.enrich.providers.defillama import DefiLlama
from permalake.wormhole.enrich.quotes import Asking
from permalake.wormhole.reference import BridgeEmitters, ChainInfo, Reference, Token
from permalake.wormhole.steps.quotes import store_quotes, store_used
from permalake.wormhole.tables.nearest_quotes import QUOTE
from support.lakes import OpenLake
from support.price_server import PriceServer
from support.quotes import LOCAL, wants

DAY = 86_400
T0 = 19_800 * DAY
HOURS = 12
RULES = PricesSettings(window_hours=HOURS)
HASTY = RetryPolicy(read=0.3, back_off=0.01, attempts=12, longest_pause=3)
IMPATIENT = RetryPolicy(read=0.3, back_off=0.01, attempts=2, longest_pause=0, failures=2, rest=0.2)


def evm(number) -> str:
    return f"{number:064x}"


def listed(chain, number, name):
    return (chain, evm(number)), Token(chain, evm(number), None, None, name, None, None)


GOLD, GOLD_TOO, LEAD, NEW, FOREIGN = (2, evm(1)), (4, evm(2)), (2, evm(3)), (2, evm(4)), (3, evm(5))
REFERENCE = Reference(
    {},
    BridgeEmitters(frozenset(), frozenset()),
    dict([listed(2, 1, "gold"), listed(4, 2, "gold")]),
    frozenset(),
    {2: ChainInfo(2, family="evm", coingecko="ethereum", llama="ethereum"), 4: ChainInfo(4, family="evm")},
)


def contract(token) -> str:
    return f"ethereum/0x{token[1][24:]}"


def history(seed):
    chance, at, found = random.Random(seed), T0 - 3 * DAY, []
    while at < T0 + 4 * DAY:
        found.append((at, f"{chance.randrange(1, 10**6)}.{chance.randrange(10**9):09d}"))
        at += chance.randrange(400, 9_000)
    return found


QUOTES = history(1)


def nearest(moment, quotes=QUOTES):
    at, price = min(quotes, key=lambda one: (abs(one[0] - moment), one[0]))
    return Decimal(price), at


def gold(moment):
    return (*nearest(moment), "coingecko")


class Desk:
    """An attempt of a lake, and what is asked of it."""

    def __init__(self, spark, folder):
        self.spark = spark
        self.folder = folder / "refusals"
        settings = Settings(lake=LakeSettings(warehouse=str(folder)), wormhole=WormholeSettings(path=folder))
        self.lake = OpenLake(settings)
        self.attempt = self.lake.begin("wormhole", dt.date(2024, 3, 18), dt.date(2024, 3, 18), "run")
        self.notes, self.stale = [], []
        self.cache = PriceCache(
            quotes=lambda first, last: self.attempt.staged.rows(TOKEN_PRICES.name, first, last).scan(),
            keep=lambda rows: store_quotes(self.context(), self.attempt, rows, self.notes.append),
            asked=partial(AskedPrices, self.lake.database),
            note=self.notes.append,
        )

    def context(self, force=False):
        marked = SimpleNamespace(mark_stale=lambda network, days, reason: self.stale.append((days, reason)))
        work = SimpleNamespace(builds=marked, settings=Settings())
        arguments = SimpleNamespace(force=force, network="wormhole")
        return SimpleNamespace(arguments=arguments, work=work, spark=self.spark)

    def ask(self, markets, *asked):
        """(token, moment) -> (price, time of the quote, provider)."""
        rows = [(*token, dt.datetime.fromtimestamp(at, dt.UTC)) for token, at in asked]
        found = priced(LOCAL, markets, wants(*rows), RULES).to_pylist()
        return {
            ((row["origin_chain"], row["origin_address"]), int(row["at"].timestamp())): (
                row["price_usd"],
                int(row["quote_time"].timestamp()),
                row["provider"],
            )
            for row in found
        }

    def stored(self):
        return self.cache.quotes(dt.date(1970, 1, 1), dt.date(2100, 1, 1)).to_table().to_pylist()

    def market(self, kind, server, retry_policy=HASTY, reference=REFERENCE, **options):
        service = Service(kind.name, server.url, 100, None, retry_policy)
        shared = {"refusals": Refusals(server.url, "", self.folder)} if kind is CoinGecko else {}
        asked = kind(service, reference.chains, HOURS * 3600, **shared)
        return CachedPriceService(asked, self.cache, reference, RULES, Asking(**options))


@pytest.fixture
def desk(spark, tmp_path):
    return Desk(spark.newSession(), tmp_path)


def test_a_token_is_asked_for_once_and_what_was_not_found_only_when_told_to(desk) -> None:
    noon, next_noon = T0 + DAY // 2, T0 + DAY + DAY // 2
    with PriceServer({"gold": QUOTES, contract(LEAD): QUOTES[::2]}, faulty=0.3, seed=3) as server:
        wants = [(GOLD, noon), (GOLD, noon + 7_000), (LEAD, noon), (NEW, noon), (FOREIGN, noon)]
        found = desk.ask([desk.market(CoinGecko, server)], *wants)
        assert found == {
            (GOLD, noon): gold(noon),
            (GOLD, noon + 7_000): gold(noon + 7_000),
            (LEAD, noon): (*nearest(noon, QUOTES[::2]), "coingecko"),
        }
        assert len(server.answered) == len(set(server.answered)) == 3  # gold, lead, new

        calls = len(server.calls)
        assert desk.ask([desk.market(CoinGecko, server)], *wants) == found
        # Another moment of the day, another token of the same name: all of it is known.
        more = [(GOLD, noon + 20_000), (GOLD_TOO, noon + 500)]
        assert desk.ask([desk.market(CoinGecko, server)], *more) == {
            (GOLD, noon + 20_000): gold(noon + 20_000),
            (GOLD_TOO, noon + 500): gold(noon + 500),
        }
        assert len(server.calls) == calls

        server.faulty = 0
        assert desk.ask([desk.market(CoinGecko, server)], (GOLD, next_noon)) == {
            (GOLD, next_noon): gold(next_noon)
        }
        assert [call[2]["from"] for call in server.calls[calls:]] == [[str(T0 + 2 * DAY)]]  # the new day only

        stored = desk.market(CoinGecko, server, stored=True)
        assert desk.ask([stored], *wants, (GOLD, next_noon + 10 * DAY)) == found
        lacks = {token: stored.lack(token) for token in (GOLD, NEW, FOREIGN)}
        assert lacks == {GOLD: "no_quote", NEW: "not_asked", FOREIGN: "not_listed"}
        server.history[contract(NEW)] = QUOTES
        calls = len(server.calls)
        found_again = desk.ask([desk.market(CoinGecko, server, again=True)], *wants)
        assert found_again == {**found, (NEW, noon): gold(noon)}
        assert [call[1] for call in server.calls[calls:]] == [
            f"/coins/ethereum/contract/0x{NEW[1][24:]}/market_chart/range"
        ]
    assert desk.notes == []


def test_a_service_that_is_down_leaves_no_price_until_it_is_back(desk) -> None:
    wants = [(token, T0 + 1_000 * number) for token in (GOLD, LEAD) for number in range(3)]
    coins = {"coingecko:gold": QUOTES, contract(LEAD).replace("/", ":"): QUOTES}
    with PriceServer(coins) as server:
        server.down = "503"
        assert desk.ask([desk.market(DefiLlama, server, IMPATIENT)], *wants) == {}
        assert desk.notes == [
            "prices: defillama: HTTP 503; 2 tokens without an answer, fill in later with --only enrich"
        ]
        server.down = None
        found = desk.ask([desk.market(DefiLlama, server)], *wants)
        assert found == {(token, at): (*nearest(at), "defillama") for token, at in wants}
        calls = len(server.calls)
        assert desk.ask([desk.market(DefiLlama, server)], *wants) == found
        assert len(server.calls) == calls


def test_the_next_provider_is_asked_for_what_the_first_has_not(desk) -> None:
    wants = [(GOLD, T0), (LEAD, T0)]
    with (
        PriceServer({"gold": QUOTES}) as first,
        PriceServer({"ethereum:0x" + LEAD[1][24:]: QUOTES}) as second,
    ):
        markets = [desk.market(CoinGecko, first), desk.market(DefiLlama, second)]
        found = desk.ask(markets, *wants)
        assert {want: price[2] for want, price in found.items()} == {
            wants[0]: "coingecko",
            wants[1]: "defillama",
        }
        asked = {coin for call in second.calls for coin in call[2]["coins"]}
        assert all("gold" not in coins for coins in asked)


def test_a_coin_with_nothing_but_zeros_is_asked_again(desk) -> None:
    noon = T0 + DAY // 2
    with PriceServer(
        {"gold": [(noon, "0"), (noon + 60, "0")], contract(LEAD): [(noon, "0"), *QUOTES]}
    ) as server:
        market = desk.market(CoinGecko, server)
        assert desk.ask([market], (GOLD, noon), (LEAD, noon)) == {(LEAD, noon): (*nearest(noon), "coingecko")}
        assert desk.notes == ["prices: coingecko: 3 quotes left out, no price above 0 and below 10^12"]
        assert [market.lack(token) for token in (GOLD, FOREIGN)] == ["no_quote", "not_listed"]
        server.history["gold"] = QUOTES
        calls = len(server.calls)
        assert desk.ask([desk.market(CoinGecko, server)], (GOLD, noon), (LEAD, noon)) == {
            (GOLD, noon): gold(noon),
            (LEAD, noon): (*nearest(noon), "coingecko"),
        }
        assert len(server.calls) == calls + 1


def test_a_quote_of_low_confidence_is_kept_and_the_next_provider_asked(desk, monkeypatch) -> None:
    record = {"timestamp": T0 - 30, "price": 12.5, "confidence": 0.12}
    with PriceServer({}) as unsure, PriceServer({"gold": QUOTES}) as second:
        monkeypatch.setattr(
            unsure,
            "answer",
            lambda path, query: (200, {"coins": {"coingecko:gold": {"prices": [record]}}}),
        )
        markets = [desk.market(DefiLlama, unsure), desk.market(CoinGecko, second)]
        assert desk.ask(markets, (GOLD, T0)) == {(GOLD, T0): gold(T0)}
        wanted = wants((*GOLD, dt.datetime.fromtimestamp(T0, dt.UTC)))
        (alone,) = priced(LOCAL, markets[:1], wanted, RULES).to_pylist()
    assert (alone["price_usd"], alone["reason"]) == (Decimal("12.5"), "low_confidence")
    stored = [row for row in desk.stored() if row["provider"] == "defillama"]
    assert [(row["price_usd"], row["confidence"]) for row in stored] == [(Decimal("12.5"), 0.12)]


def test_a_corrected_quote_keeps_the_former_price(desk) -> None:
    moment = dt.datetime.fromtimestamp(T0, dt.UTC)
    landing = DayLanding(desk.spark, desk.attempt.landing, None)

    def used(price):
        row = (*GOLD, "file", moment, Decimal(price), None, None)
        return [pa.Table.from_pylist([dict(zip(QUOTE.names, row, strict=True))], QUOTE)]

    assert store_used(desk.context(False), desk.attempt, landing, used("2.5"), desk.notes.append) == 1
    assert store_used(desk.context(False), desk.attempt, landing, used("3.5"), desk.notes.append) == 0
    assert desk.notes == desk.stale == []
    assert store_used(desk.context(True), desk.attempt, landing, used("3.5"), desk.notes.append) == 0
    (row,) = desk.stored()
    assert (row["price_usd"], row["former_price_usd"]) == (Decimal("3.5"), Decimal("2.5"))
    assert row["corrected_at"] >= row["fetched_at"]
    assert desk.notes == [
        "prices: stored quotes corrected: 1 (former_price_usd in token_prices), such as file's of "
        f"2:{GOLD[1]} at 2024-03-18T00:00:00Z: 2.5 before, 3.5 now"
    ]
    # The attempt's own day is built with it; its neighbours may have used it.
    assert desk.stale == [([dt.date(2024, 3, 17), dt.date(2024, 3, 19)], desk.notes[0])]
    store_used(desk.context(True), desk.attempt, landing, used("3.5"), desk.notes.append)
    assert len(desk.stale) == 1


def test_a_corrected_coin_brings_its_own_quotes_to_all_its_tokens(desk) -> None:
    noon = T0 + DAY // 2
    before = replace(REFERENCE, tokens=dict([listed(2, 3, "gold")]))
    after = replace(REFERENCE, tokens=dict([listed(2, 3, "lead"), listed(2, 4, "lead")]))
    history = {
        "gold": [(noon - 600, "1000"), (noon, "1000")],
        "lead": [(noon - 600, "1"), (noon + 900, "1")],
    }
    with PriceServer(history) as server:
        wrong = desk.ask([desk.market(CoinGecko, server, reference=before)], (LEAD, noon))
        assert wrong == {(LEAD, noon): (Decimal(1000), noon, "coingecko")}
        assert desk.notes == []
        right = {(token, noon): (Decimal(1), noon - 600, "coingecko") for token in (LEAD, NEW)}
        for _ in range(2):
            assert desk.ask([desk.market(CoinGecko, server, reference=after)], *right) == right
        assert len(server.answered) == 2
    stored = {
        (row["origin_address"], int(row["quote_time"].timestamp()) - noon): (
            *(row["price_usd"], row["former_price_usd"], row["coin"]),
        )
        for row in desk.stored()
    }
    assert stored == {
        (LEAD[1], -600): (1, 1000, "lead"),
        (LEAD[1], 0): (1000, None, "gold"),
        (LEAD[1], 900): (1, None, "lead"),
        (NEW[1], -600): (1, None, "lead"),
        (NEW[1], 900): (1, None, "lead"),
    }
    assert desk.notes == [
        "prices: stored quotes of other coins replaced, as the token list names another coin now: days "
        "2024-03-18 to 2024-03-18"
    ]
    assert desk.stale == [([dt.date(2024, 3, 17), dt.date(2024, 3, 19)], desk.notes[0])]


def test_quotes_of_a_token_s_address_stay_once_it_is_listed(desk) -> None:
    noon = T0 + DAY // 2
    with PriceServer({contract(LEAD): [(noon, "1")], "lead": [(noon, "1.5")]}) as server:
        found = desk.ask([desk.market(CoinGecko, server)], (LEAD, noon))
        now_listed = replace(REFERENCE, tokens=dict([listed(2, 3, "lead"), listed(2, 4, "lead")]))
        market = desk.market(CoinGecko, server, reference=now_listed)
        both = desk.ask([market], (LEAD, noon), (NEW, noon))
    assert found == {(LEAD, noon): (Decimal(1), noon, "coingecko")}
    assert both == {**found, (NEW, noon): (Decimal("1.5"), noon, "coingecko")}
    assert desk.stale == desk.notes == []


def test_a_token_s_own_stored_quote_counts_before_that_of_another_of_its_coin(desk) -> None:
    noon = T0 + DAY // 2
    with PriceServer({"gold": QUOTES}) as server:
        found = desk.ask([desk.market(CoinGecko, server)], (GOLD, noon))
        revised = {"origin_chain": GOLD_TOO[0], "origin_address": GOLD_TOO[1], "price_usd": Decimal("0.5")}
        rows = [{**row, **revised} for row in desk.stored()]
        append_new(desk.attempt, pa.Table.from_pylist(rows, TOKEN_PRICES.arrow), TOKEN_PRICES, desk.spark)
        both = desk.ask([desk.market(CoinGecko, server)], (GOLD, noon), (GOLD_TOO, noon))
    assert found == {(GOLD, noon): gold(noon)}
    assert both == {**found, (GOLD_TOO, noon): (Decimal("0.5"), *gold(noon)[1:])}


def test_a_part_without_an_answer_is_no_lack_of_quotes_though_another_part_has_one(desk, monkeypatch) -> None:
    early, late = T0 - 2 * DAY + DAY // 2, T0 + 2 * DAY + DAY // 2
    with PriceServer({"gold": QUOTES}) as server:
        plain = server.answer
        monkeypatch.setattr(
            server,
            "answer",
            lambda path, query: (500, {}) if int(query["from"][0]) < T0 else plain(path, query),
        )
        market = desk.market(CoinGecko, server, IMPATIENT)
        assert desk.ask([market], (GOLD, early), (GOLD, late)) == {(GOLD, late): gold(late)}
        assert market.lack(GOLD) == "not_answered"
        assert desk.notes == [
            "prices: coingecko: HTTP 500; 1 token without an answer, fill in later with --only enrich"
        ]
        monkeypatch.setattr(server, "answer", plain)
        assert desk.ask([market], (GOLD, early)) == {(GOLD, early): gold(early)}
        assert market.lack(GOLD) == "no_quote"
