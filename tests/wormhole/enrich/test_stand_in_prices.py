"""Fallback prices: dollars for stablecoins that keep their peg, quotes of wrapped assets, else nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from permalake.config.services import PricesSettings
from permalake.wormhole.enrich.providers.file import FilePrices
from permalake.wormhole.enrich.stand_in_prices import stand_in_prices
from permalake.wormhole.reference import load_reference
from support.quotes import LOCAL, wants

STABLE, LOST, GOLD, GOLD_TOO, WRAPPING, PLAIN, DENIED = (f"{n:02x}" * 32 for n in range(1, 8))
NOON = datetime(2024, 3, 10, 12, tzinfo=UTC)


def hours(number):
    return NOON + timedelta(hours=number)


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference")
    coins = {STABLE: "coin-dollar", LOST: "lost-dollar", GOLD: "gold", WRAPPING: "wrapped-gold", PLAIN: "tin"}
    tokens = [f"2,{address},{coin}" for address, coin in coins.items()]
    tokens += [f"5,{GOLD_TOO},gold", f"2,{DENIED},gold"]
    (folder / "token_list.csv").write_text("\n".join(["chain,token_address,coingecko_id", *tokens]))
    (folder / "deny.json").write_text(f'[{{"chain": 2, "token_address": "{DENIED}"}}]')
    (folder / "stand_ins.csv").write_text(
        "coingecko_id,stands_for,until\ncoin-dollar,usd,\nlost-dollar,usd,2024-03-11\nwrapped-gold,gold,\n"
    )
    return load_reference(folder)


@pytest.fixture(scope="module")
def prices(tmp_path_factory):
    file = tmp_path_factory.mktemp("quotes") / "quotes.csv"
    quotes = [
        f"{hours(-3):%Y-%m-%dT%H:%M:%SZ},2,{GOLD},2000",
        f"{hours(1):%Y-%m-%dT%H:%M:%SZ},5,{GOLD_TOO},2001.5",
        f"{hours(0):%Y-%m-%dT%H:%M:%SZ},2,{DENIED},1",
        f"{hours(0):%Y-%m-%dT%H:%M:%SZ},2,{PLAIN},3",
    ]
    file.write_text("\n".join(["quoted_at,chain,token_address,price_usd", *quotes]))
    return FilePrices(file, 12)


def told(reference, prices, *moments):
    found = stand_in_prices(LOCAL, reference, [prices], wants(*moments), PricesSettings())
    quotes = found.quotes.to_pylist() if found.quotes else []
    return {
        (row["origin_address"], row["at"]): tuple(row.values())[3:] for row in found.prices.to_pylist()
    }, quotes


def test_each_token_has_its_stand_in_or_none(reference, prices) -> None:
    moments = [(2, address, NOON) for address in (STABLE, LOST, WRAPPING, PLAIN, GOLD, DENIED)]
    moments += [(5, STABLE, NOON), (2, LOST, hours(24)), (2, WRAPPING, hours(-2)), (2, WRAPPING, hours(20))]
    found, quotes = told(reference, prices, *moments)
    assert found == {
        (STABLE, NOON): ("usd", Decimal(1), None),
        (LOST, NOON): ("usd", Decimal(1), None),
        (WRAPPING, NOON): ("gold", Decimal("2001.5"), hours(1)),
        (WRAPPING, hours(-2)): ("gold", Decimal(2000), hours(-3)),
    }
    assert {(row["origin_chain"], row["origin_address"]) for row in quotes} == {(2, GOLD), (5, GOLD_TOO)}


def test_nothing_is_asked_when_no_token_has_a_stand_in(reference, prices) -> None:
    assert told(reference, prices, (2, PLAIN, NOON)) == ({}, [])
