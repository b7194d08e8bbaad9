"""CoinGecko's and DefiLlama's routes, against a server that keeps to them."""

from __future__ import annotations

import itertools
import random
from decimal import Decimal

import pytest

from permalake.config import Settings, load_settings
from permalake.config.services import PricesSettings
from permalake.errors import ConfigError
from permalake.net.http import RetryPolicy, Service
from permalake.net.refusals import Refusals
from permalake.wormhole.enrich.price_providers import providers
from permalake.wormhole.enrich.price_service import CachedPriceService, PriceCache
from permalake.wormhole.enrich.providers import coingecko, defillama
from permalake.wormhole.enrich.providers.coingecko import CoinGecko
from permalake.wormhole.enrich.providers.defillama import DefiLlama
from permalake.wormhole.enrich.providers.file import FilePrices
from permalake.wormhole.enrich.quotes import Ask, Coin, usd
from permalake.wormhole.reference import ChainInfo
from support.price_server import PriceServer

DAY, HOUR, WINDOW = 86_400, 3_600, 12 * 3_600
T0 = 19_800 * DAY
CHAINS = {
    2: ChainInfo(2, family="evm", coingecko="ethereum", llama="ethereum"),
    3: ChainInfo(3, family="cosmos"),
}
HASTY = RetryPolicy(read=0.3, back_off=0.01, attempts=12, longest_pause=3)
SHORT = RetryPolicy(read=0.3, back_off=0.01, attempts=2, longest_pause=0)
LISTED = Coin(2, "0xAb", "gold")
UNLISTED = Coin(2, "0xcd", None)


def history(seed, closest=301, widest=7_000, days=6):
    """Quotes at whole seconds, no two closer than five minutes."""
    chance, at, found = random.Random(seed), T0, []
    while at < T0 + days * DAY:
        found.append((at, f"{chance.randrange(1, 10**9)}.{chance.randrange(10**9):09d}"))
        at += chance.randrange(closest, widest)
    return found


def nearest(quotes, moment):
    within = [one for one in quotes if abs(one[0] - moment) <= WINDOW]
    return min(within, key=lambda one: (abs(one[0] - moment), one[0]), default=None)


def asked(service, asks):
    answers = list(service.answers(asks))
    assert [answer.fault for answer in answers] == [None] * len(answers)
    return {
        coin: [
            (quote.micros // 10**6, quote.usd)
            for one in answers
            for quote in one.quotes
            if quote.coin == coin
        ]
        for coin in {ask.coin for ask in asks}
    }


def test_names_of_tokens() -> None:
    gecko, llama = CoinGecko(None, CHAINS, WINDOW), DefiLlama(None, CHAINS, WINDOW)
    unknown = (Coin(3, "uusd", None), Coin(9, "0xab", None), Coin(2, None, None))
    assert [gecko.coin(token) for token in (LISTED, UNLISTED, *unknown)] == [
        "gold",
        "ethereum/0xcd",
        None,
        None,
        None,
    ]
    assert [llama.coin(token) for token in (LISTED, UNLISTED)] == ["coingecko:gold", "ethereum:0xcd"]
    assert [llama.coin(token) for token in unknown] == [None, None, None]


@pytest.mark.parametrize(
    ("url", "key", "base", "headers"),
    [
        (None, None, "https://api.coingecko.com/api/v3", {}),
        (None, "k", "https://pro-api.coingecko.com/api/v3", {"x-cg-pro-api-key": "k"}),
        ("https://api.coingecko.com", "k", "https://api.coingecko.com/api/v3", {"x-cg-demo-api-key": "k"}),
        (
            "https://pro-api.coingecko.com/api/v3",
            "k",
            "https://pro-api.coingecko.com/api/v3",
            {"x-cg-pro-api-key": "k"},
        ),
        ("http://127.0.0.1:1", "k", "http://127.0.0.1:1", {"x-cg-pro-api-key": "k"}),
    ],
)
def test_the_key_goes_under_the_name_that_the_address_expects(url, key, base, headers) -> None:
    assert coingecko.base(url, key) == base
    assert coingecko.headers(base, key) == headers


def test_addresses_of_defillama() -> None:
    assert defillama.base(None, None) == "https://coins.llama.fi"
    assert defillama.base(None, "k/") == "https://pro-api.llama.fi/k%2F/coins"
    assert defillama.base("http://127.0.0.1:1", "k") == "http://127.0.0.1:1"


@pytest.mark.parametrize("seed", [1, 2])
def test_coingecko_gives_every_quote_of_the_days_around(seed) -> None:
    quotes = history(seed)
    coins = {"gold": quotes, "ethereum/0xcd": quotes[::3]}
    moment = T0 + 2 * DAY + 5 * HOUR
    with (
        PriceServer(coins, faulty=0.4, seed=seed) as server,
        Service("cg", server.url, 200, None, HASTY) as http,
    ):
        service = CoinGecko(http, CHAINS, WINDOW)
        span = service.needed(moment, moment)
        assert span == (T0 + DAY, T0 + 3 * DAY)
        found = asked(service, [Ask(coin, span) for coin in (*coins, "unknown")])
    for coin, known in coins.items():
        assert found[coin] == [(at, Decimal(price)) for at, price in known if span[0] <= at <= span[1]]
        assert nearest(found[coin], moment) == nearest([(at, Decimal(price)) for at, price in known], moment)
    assert found["unknown"] == []


def test_coingecko_asks_in_ranges_that_are_answered_hour_by_hour() -> None:
    with PriceServer({"gold": []}) as server, Service("cg", server.url, 1000) as http:
        now = T0 + 300 * DAY
        service = CoinGecko(http, CHAINS, WINDOW, clock=lambda: now)
        asked(service, [Ask("gold", (T0, now + DAY))])
        ranges = [(int(call[2]["from"][0]), int(call[2]["to"][0])) for call in server.calls]
    assert ranges[0][0] == T0
    assert ranges[-1][1] == now
    assert max(end - start for start, end in ranges) < 90 * DAY
    assert [end for _, end in ranges[:-1]] == [start for start, _ in ranges[1:]]


@pytest.mark.parametrize(
    ("status", "body", "calls", "fault"),
    [
        (404, '{"error": "coin not found"}', 5, None),
        (401, '{"error": {"status": {"error_code": 10012, "error_message": "too far back"}}}', 5, None),
        (401, '{"status": {"error_code": 10002, "error_message": "no key"}}', 1, "PERMALAKE_PRICES__API_KEY"),
        (404, "<html>", 1, "prices.url"),
        (400, '{"error": "invalid"}', 5, "HTTP 400"),
        (400, '{"error_code": [10012]}', 5, "HTTP 400"),
    ],
)
def test_what_coingecko_refuses(monkeypatch, status, body, calls, fault) -> None:
    with PriceServer({}) as server, Service("cg", server.url, 1000, None, SHORT) as http:
        monkeypatch.setattr(server, "answer", lambda path, query: (status, body))
        service = CoinGecko(http, CHAINS, WINDOW)
        answers = [answer for _ in range(5) for answer in service.answers([Ask("gold", (T0, T0 + DAY))])]
        assert len(server.calls) == calls
    assert {answer.quotes == [] for answer in answers} == {True}
    assert {fault in answer.fault if fault else answer.fault is None for answer in answers} == {True}


TOO_FAR = '{"error": {"status": {"error_code": 10012, "error_message": "too far back"}}}'


def test_coins_that_coingecko_does_not_list_are_requested_once_a_week(tmp_path) -> None:
    now = [T0 + 30 * DAY]
    with PriceServer({"gold": history(1)}) as server, Service("cg", server.url, 1000, None, SHORT) as http:

        def answers(day, fresh=False):
            refusals = Refusals(server.url, "key", tmp_path, lambda: now[0])  # as another process opens it
            service = CoinGecko(http, CHAINS, WINDOW, lambda: now[0], refusals)
            asks = [Ask(coin, (day, day + DAY)) for coin in ("gold", "tin")]
            return {answer.asks[0].coin: answer for answer in service.answers(asks, fresh)}

        first = answers(T0)
        assert first["tin"].unlisted
        assert not first["tin"].is_settled
        assert first["gold"].quotes
        assert first["gold"].is_settled
        nothing = answers(T0 + 20 * DAY)  # listed, without a quote at that time
        assert (nothing["gold"].quotes, nothing["gold"].is_settled) == ([], True)
        assert nothing["tin"].unlisted
        assert [call[1].split("/")[2] for call in server.calls].count("tin") == 1
        answers(T0, fresh=True)
        now[0] += 8 * DAY
        answers(T0)
        assert [call[1].split("/")[2] for call in server.calls].count("tin") == 3


def test_a_past_outside_the_plan_is_no_lack_of_quotes(tmp_path, monkeypatch) -> None:
    with PriceServer({"gold": history(1)}) as server, Service("cg", server.url, 1000, None, SHORT) as http:
        plain = server.answer
        monkeypatch.setattr(
            server,
            "answer",
            lambda path, query: (401, TOO_FAR) if int(query["from"][0]) < T0 else plain(path, query),
        )

        def answer(start, account="key", days=1):
            refusals = Refusals(server.url, account, tmp_path, lambda: T0 + 30 * DAY)
            service = CoinGecko(http, CHAINS, WINDOW, lambda: T0 + 30 * DAY, refusals)
            (only,) = service.answers([Ask("gold", (start, start + days * DAY))])
            return only

        refused = answer(T0 - 2 * DAY)
        assert "10012" in refused.forbidden
        assert not refused.is_settled
        assert refused.fault is None
        assert answer(T0 - 3 * DAY).forbidden
        assert len(server.calls) == 1
        assert answer(T0).quotes
        assert answer(T0 - 3 * DAY, account="a larger plan").forbidden
        assert len(server.calls) == 3
        part = answer(T0 - 2 * DAY, days=3)
        assert part.forbidden
        assert part.quotes, "what the plan has of a range"


@pytest.mark.parametrize("before", [1, 59, 200])
def test_a_range_across_the_begin_of_the_plan_has_every_day_that_the_plan_has(
    tmp_path, monkeypatch, before
) -> None:
    quotes = history(1)
    coins = {"gold": quotes, "tin": quotes, "lead": quotes}
    with PriceServer(coins) as server, Service("cg", server.url, 1000, None, SHORT) as http:
        plain = server.answer
        monkeypatch.setattr(
            server,
            "answer",
            lambda path, query: (401, TOO_FAR) if int(query["from"][0]) < T0 else plain(path, query),
        )
        refusals = Refusals(server.url, "key", tmp_path, lambda: T0 + 5 * DAY)
        service = CoinGecko(http, CHAINS, WINDOW, lambda: T0 + 5 * DAY, refusals)
        span = (T0 - before * DAY, T0 + 6 * DAY)
        for coin, calls in (("gold", 10), ("tin", 1), ("lead", 1)):
            asked_before = len(server.calls)
            (only,) = service.answers([Ask(coin, span)])
            known = [at for at, _ in quotes if at <= T0 + 5 * DAY]
            assert [quote.micros // 10**6 for quote in only.quotes] == known
            assert only.forbidden
            assert len(server.calls) - asked_before <= calls
        assert refusals.refused([coingecko.HISTORY]) == {coingecko.HISTORY: str(T0 - DAY)}
        asked_before = len(server.calls)
        assert all(one.quotes for one in service.answers([Ask(coin, span) for coin in coins], fresh=True))
        assert len(server.calls) - asked_before <= 30


@pytest.mark.parametrize("batches", [True, False])
def test_defillama_gives_the_nearest_record_of_every_second(batches) -> None:
    quotes = history(3, days=1)
    chance = random.Random(4)
    moments = sorted(T0 + chance.randrange(DAY) for _ in range(60 if batches else 8))
    middle = [(a + b) // 2 for (a, _), (b, _) in itertools.pairwise(quotes) if (a + b) % 2 == 0]
    moments += middle[:3]  # as near to the earlier as to the later
    coins = {"coingecko:gold": quotes, "ethereum:0xcd": quotes[::4]}
    with PriceServer(coins, faulty=0.2, seed=5, batches=batches) as server:
        with Service("llama", server.url, 500, None, HASTY) as http:
            service = DefiLlama(http, CHAINS, WINDOW)
            asks = [Ask(coin, service.needed(at, at)) for coin in (*coins, "base:0x0") for at in moments]
            found = asked(service, asks)
        assert (
            max(len(call[1]) + sum(len(text) for (text,) in call[2].values()) for call in server.calls)
            < 8_000
        )
    for coin, known in coins.items():
        exact = [(at, Decimal(price)) for at, price in known]
        assert [nearest(found[coin], at) for at in moments] == [nearest(exact, at) for at in moments]
    assert found["base:0x0"] == []


@pytest.mark.parametrize("batches", [True, False])
def test_defillama_tells_an_unlisted_coin_from_one_without_a_quote(tmp_path, batches) -> None:
    now = [T0 + 30 * DAY]
    coins = {"coingecko:gold": history(1), "ethereum:0xab": history(2, days=25)}
    with (
        PriceServer(coins, batches=batches) as server,
        Service("llama", server.url, 1000, None, SHORT) as http,
    ):

        def answers(at, fresh=False):
            refusals = Refusals(server.url, "key", tmp_path, lambda: now[0])  # as another process opens it
            service = DefiLlama(http, CHAINS, WINDOW, lambda: now[0], refusals)
            asks = [Ask(coin, (at, at + 300)) for coin in (*coins, "ethereum:0xcd")]
            found = list(service.answers(asks, fresh))
            assert [answer.fault for answer in found] == [None] * len(found)
            return {ask.coin: answer for answer in found for ask in answer.asks}

        def requests_of(coin):
            return sum(coin in f"{call[1]}{call[2]}" and "first" not in call[1] for call in server.calls)

        first = answers(T0 + DAY)
        assert first["ethereum:0xcd"].unlisted
        assert not first["ethereum:0xcd"].is_settled
        assert all(first[coin].quotes and first[coin].is_settled for coin in coins)
        asked_before = requests_of("0xcd")
        later = answers(T0 + 20 * DAY)
        gold = later["coingecko:gold"]  # listed, without a quote at that time
        assert (gold.quotes, gold.unlisted, gold.is_settled) == ([], False, True)
        assert later["ethereum:0xcd"].remembered
        assert requests_of("0xcd") == asked_before
        now[0] += 8 * DAY
        coins["ethereum:0xcd"] = history(3)
        assert answers(T0 + DAY)["ethereum:0xcd"].quotes


def test_defillama_asks_again_where_no_route_tells_what_is_listed(monkeypatch) -> None:
    with PriceServer({}) as server, Service("llama", server.url, 1000, None, SHORT) as http:
        plain = server.answer
        status = [404]

        def answer(path, query):
            return (status[0], {"message": "x"}) if path.startswith("/prices/first") else plain(path, query)

        monkeypatch.setattr(server, "answer", answer)
        service = DefiLlama(http, CHAINS, WINDOW)
        asks = [Ask("base:0x0", (T0, T0 + 300))]
        (only,) = service.answers(asks)
        assert only.unlisted
        assert not only.is_settled
        status[0] = 400
        (only,) = service.answers(asks)
        assert only.fault == "defillama: HTTP 400"


def test_a_fault_leaves_its_asks_unanswered_and_no_others() -> None:
    with PriceServer({"gold": history(1)}) as server, Service("cg", server.url, 1000, None, SHORT) as http:
        server.down = "500"
        service = CoinGecko(http, CHAINS, WINDOW)
        ask = Ask("gold", (T0, T0 + DAY))
        (answer,) = service.answers([ask])
        assert (answer.asks, answer.quotes, answer.fault) == ((ask,), [], "cg: HTTP 500")
        server.down = None
        assert len(asked(service, [ask])["gold"]) > 10


@pytest.mark.parametrize(
    ("value", "price"),
    [
        (Decimal("1.0000000000000000005"), Decimal("1")),
        (Decimal("1.0000000000000000015"), Decimal("1.000000000000000002")),
        (0, None),
        (Decimal("1e-19"), None),
        (10**12 - 1, Decimal(10**12 - 1)),
        (10**12, None),
        (Decimal("1e9999"), None),
        (-1, None),
        (None, None),
        ("1", None),
        (True, None),
    ],
)
def test_prices_as_the_lake_keeps_them(value, price) -> None:
    assert usd(value) == price


def test_what_is_no_price_has_none_and_defillama_tells_its_confidence(monkeypatch) -> None:
    gecko = {
        "prices": [[T0 * 1000, 2.0], [(T0 + 1) * 1000, None], [(T0 + 2) * 1000, 0], [(T0 + 3) * 1000, -1]]
    }
    record = {"timestamp": T0 + 60, "price": 12.94, "confidence": 0.12}
    llama = {"coins": {"ethereum:0xab": {"prices": [record, {"timestamp": T0 + 90, "price": 0}]}}}
    with PriceServer({}) as server, Service("x", server.url, 1000, None, SHORT) as http:
        for kind, document, coin in ((CoinGecko, gecko, "gold"), (DefiLlama, llama, "ethereum:0xab")):
            monkeypatch.setattr(server, "answer", lambda path, query, document=document: (200, document))
            (answer,) = kind(http, CHAINS, WINDOW).answers([Ask(coin, (T0, T0 + 300))])
            prices = [quote.usd for quote in answer.quotes]
            assert prices == ([Decimal(2), None, None, None] if coin == "gold" else [Decimal("12.94"), None])
            assert answer.quotes[0].confidence == (None if coin == "gold" else 0.12)


@pytest.mark.parametrize("timestamp", [10**15, 10**60, -1, 1e300])
@pytest.mark.parametrize("batches", [True, False])
def test_a_record_of_no_moment_is_a_fault(monkeypatch, timestamp, batches) -> None:
    record = {"timestamp": timestamp, "price": 1.5}
    document = {"coins": {"ethereum:0xab": {"prices": [record]} if batches else record}}
    with PriceServer({}) as server, Service("llama", server.url, 1000, None, SHORT) as http:

        def answer(path, query):
            return (200, document) if batches or "batch" not in path else (404, {})

        monkeypatch.setattr(server, "answer", answer)
        (only,) = DefiLlama(http, CHAINS, WINDOW).answers([Ask("ethereum:0xab", (T0, T0 + 300))])
    assert "no moment" in only.fault


NO_CACHE = PriceCache(lambda first, last: None, lambda rows: 0, lambda provider: None, lambda text: None)
CONFIGURED = """
[prices]
provider = "coingecko"
path = "quotes.csv"
[[prices.fallback]]
provider = "file"
path = "more.csv"
[[prices.fallback]]
provider = "defillama"
rate_per_second = 5
"""


def test_a_provider_is_no_cross_check_of_itself(tmp_path) -> None:
    file = tmp_path / "permalake.toml"
    file.write_text('[prices]\nprovider = "coingecko"\n[prices.cross_check]\nprovider = "coingecko"\n')
    with pytest.raises(ConfigError, match=r"prices.*cross_check: coingecko is already asked for prices"):
        load_settings(file)


@pytest.mark.parametrize("table", ["prices", "prices.fallback"])
def test_an_unknown_provider_is_an_error_that_names_its_key(tmp_path, table) -> None:
    head = f"[{table}]" if table == "prices" else f"[[{table}]]"
    (tmp_path / "permalake.toml").write_text(f'{head}\nprovider = "coinbase"')
    with pytest.raises(ConfigError, match=rf"{table}.*provider: .*choose coingecko, defillama, file"):
        load_settings(tmp_path / "permalake.toml")


def test_a_provider_that_no_module_serves_is_never_another_one() -> None:
    unchecked = Settings(prices=PricesSettings.model_construct(provider="coinbase", fallback=(), path=None))
    with pytest.raises(ConfigError, match=r"prices\.provider: coinbase is no price provider"):
        providers(unchecked, NO_CACHE)


def test_providers_are_asked_in_the_configured_order(tmp_path) -> None:
    (tmp_path / "permalake.toml").write_text(CONFIGURED)
    chain = providers(load_settings(tmp_path / "permalake.toml"), NO_CACHE)
    assert [type(provider) for provider in chain] == [
        CachedPriceService,
        FilePrices,
        CachedPriceService,
        FilePrices,
    ]
    assert [provider.path.name for provider in chain[1::2]] == ["more.csv", "quotes.csv"]  # type: ignore[attr-defined]
    assert chain[1].path == tmp_path / "more.csv"  # type: ignore[attr-defined]
    assert [type(provider) for provider in providers(Settings(), NO_CACHE)] == [FilePrices]
