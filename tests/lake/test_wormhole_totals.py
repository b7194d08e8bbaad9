"""Roll-ups of the Wormhole analytics over all chains and tokens, as `permalake query` offers them."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from support.lakes import pass_audit, put

DAY, NEXT, HUGE_DAY = date(2024, 3, 10), date(2024, 3, 11), date(2024, 3, 12)
HUGE = "600000000000000000000000000000.00000001"
TOKEN, OTHER = "aa" * 32, "bb" * 32


def route(day, emitter_chain, target_chain, token, transfers, value):
    return {
        "date": day,
        "emitter_chain": emitter_chain,
        "target_chain": target_chain,
        "symbol": None,
        "origin_chain": 2,
        "origin_address": token,
        "transfers": transfers,
        "amount": "1",
        "notional_usd": value and Decimal(value),
    }


@pytest.fixture
def built(settings, lake):
    attempt = lake.begin("wormhole", DAY, HUGE_DAY, "run")
    routes = [
        route(DAY, 2, 4, TOKEN, 3, "1.5"),
        route(DAY, 2, 5, TOKEN, 1, None),
        route(DAY, 4, 2, OTHER, 2, "10"),
        route(NEXT, 2, 4, TOKEN, 7, "0.25"),
        route(HUGE_DAY, 2, 4, TOKEN, 1, HUGE),
        route(HUGE_DAY, 4, 2, TOKEN, 1, HUGE),
    ]
    put(settings, attempt, "notional_transferred_daily", routes)
    counts = [(DAY, 2, 9, 8), (DAY, 4, 5, 5), (NEXT, 2, 1, 1)]
    names = ("date", "emitter_chain", "messages", "verified")
    messages = [{**dict(zip(names, row, strict=True)), "quarantined": row[2] - row[3]} for row in counts]
    put(settings, attempt, "messages_daily", messages)
    held = [
        {"date": DAY, "origin_chain": chain, "origin_address": token, "amount": "1", "notional_usd": value}
        for chain, token, value in ((2, TOKEN, Decimal(5)), (2, OTHER, None), (4, TOKEN, Decimal(7)))
    ]
    held += [
        {"date": HUGE_DAY, "origin_chain": 2, "origin_address": token, "amount": "1", "notional_usd": value}
        for token, value in ((TOKEN, Decimal(HUGE)), (OTHER, Decimal(HUGE)), ("cc" * 32, Decimal(f"-{HUGE}")))
    ]
    put(settings, attempt, "tvl_daily", held)
    lake.builds.publish(pass_audit(attempt))
    return lambda sql: [tuple(row.values()) for row in lake.query(sql).to_pylist()]


def test_every_choice_of_chains_and_token_has_its_sum(built) -> None:
    totals = "select date, transfers, notional_usd from wormhole.notional_transferred_totals where"
    nothing = "emitter_chain is null and target_chain is null and origin_address is null"
    assert built(f"{totals} {nothing} and date < '{HUGE_DAY}' order by date") == [
        (DAY, 6, Decimal("11.5")),
        (NEXT, 7, Decimal("0.25")),
    ]
    token = nothing.replace("origin_address is null", f"origin_address = '{TOKEN}'")
    token = f"{token} and date < '{HUGE_DAY}'"
    assert built(f"{totals} {token} order by date") == [(DAY, 4, Decimal("1.5")), (NEXT, 7, Decimal("0.25"))]
    assert built(f"{totals} emitter_chain = 2 and target_chain = 5 and origin_address is null") == [
        (DAY, 1, None)
    ]
    by_day = "wormhole.notional_transferred_totals(DATE '2024-03-10')"
    assert built(f"select count(distinct date) from {by_day}") == [(1,)]


def test_messages_and_value_locked_of_all_chains(built) -> None:
    messages = "select emitter_chain, messages, verified, quarantined from wormhole.messages_totals"
    assert built(f"{messages} where date = '2024-03-10' order by all nulls last") == [
        (2, 9, 8, 1),
        (4, 5, 5, 0),
        (None, 14, 13, 1),
    ]
    held = "wormhole.tvl_totals(DATE '2024-03-11')"
    locked = f"select origin_chain, tokens, valued, notional_usd from {held} order by all nulls last"
    assert built(locked) == [(2, 2, 1, Decimal(5)), (4, 1, 1, Decimal(7)), (None, 3, 2, Decimal(12))]


def test_sums_beyond_38_digits_are_null_and_break_nothing(built) -> None:
    """1.2e30 dollars do not fit in decimal(38,8), although each summand does."""
    day = f"date = '{HUGE_DAY}' and"
    totals = f"select notional_usd from wormhole.notional_transferred_totals where {day}"
    assert built(f"{totals} emitter_chain is null and target_chain is null and origin_address is null") == [
        (None,)
    ]
    assert built(f"{totals} emitter_chain = 2 and target_chain is null and origin_address is null") == [
        (Decimal(HUGE),)
    ]
    locked = f"select notional_usd from wormhole.tvl_totals where {day} origin_chain is null"
    assert built(locked) == [(Decimal(HUGE),)]
