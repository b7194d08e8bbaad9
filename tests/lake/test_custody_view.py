"""Locked value by custody and by flow, beside a second computation in plain Python."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from permalake.contracts import Table
from permalake.wormhole.contracts.custody_views import TVL_COMPARED
from permalake.wormhole.contracts.figures import OPEN_REQUESTS
from support.lakes import pass_audit, put

DAYS = (date(2024, 3, 10), date(2024, 3, 11))
NOON = datetime(2024, 3, 20, 12, tzinfo=UTC)
HUGE = "9" * 60
SHARE = Decimal("0.00000001")


def _answer(held, status, amount, outstanding):
    known = status == "known"
    return {
        **{name: held[name] for name in ("date", "origin_chain", "origin_address")},
        **{"status": status, "block": 7, "decimals": 8 if known else None},
        **{"balance": "1" if known else None, "amount": amount, "outstanding": outstanding},
        **{"reason": None if known else "why", "asked_at": NOON},
    }


def _made():
    """Locked value and answers: seeded, with every mixture of answers."""
    chance = random.Random(11)
    held, told = [], []
    for number in range(400):
        amount = chance.choice(("0", "2.5", "-1.5", "0.00000001", "123456.78901234", HUGE))
        has_value = amount != HUGE and chance.random() < 0.8
        row = {
            **{"date": DAYS[number % 2], "origin_chain": 2, "origin_address": f"{number:064x}"},
            **{"amount": amount, "notional_usd": Decimal(amount) * 3 if has_value else None},
        }
        held.append(row)
        if chance.random() < 0.3:
            told.append(_answer(row, "unknown", None, None))
        if (status := chance.choice(("known", "known", "none", None))) == "known":
            custody = chance.choice((amount.lstrip("-"), "0", "4", "123456.78901233", HUGE))
            told.append(_answer(row, "known", custody, chance.choice((None, "0", "2", custody))))
        elif status:
            told.append(_answer(row, "none", None, None))
    return held, told


@pytest.fixture
def made(settings, lake):
    held, told = _made()
    attempt = lake.begin("wormhole", *DAYS, "run")
    put(settings, attempt, "tvl_daily", held)
    put(settings, attempt, "token_custody", told)
    lake.builds.publish(pass_audit(attempt))
    return held, told, lambda sql: lake.query(sql).to_pylist()


def _number(text):
    return None if text is None or text == HUGE else Decimal(text)


def _less(left, right):
    return None if left is None or right is None else left - right


def test_the_comparison_is_that_of_plain_python(made) -> None:
    held, told, query = made
    ranks = ("unknown", "none", "known")
    best = {}
    for answer in sorted(told, key=lambda one: ranks.index(one["status"])):
        best[answer["date"], answer["origin_address"]] = answer
    found = {
        (row["date"], row["origin_address"]): row for row in query("SELECT * FROM wormhole.tvl_compared")
    }
    assert len(found) == len(held)
    for row in held:
        mine = found[row["date"], row["origin_address"]]
        answer = best.get((row["date"], row["origin_address"]), {"status": "not_asked"})
        flow, value = _number(row["amount"]), row["notional_usd"]
        custody, counted = _number(answer.get("amount")), _number(answer.get("outstanding"))
        assert (mine["status"], mine["block"]) == (answer["status"], answer.get("block"))
        assert (mine["flow_amount"], mine["custody_amount"], mine["outstanding_amount"]) == (
            flow,
            custody,
            counted,
        )
        assert mine["difference"] == _less(custody, flow)
        assert mine["beside_transfers"] == _less(custody, counted)
        assert mine["not_in_flow"] == _less(counted, flow)
        assert mine["flow_usd"] == value
        worth = _worth(custody, flow, value)
        assert (mine["custody_usd"] is None) == (worth is None)
        if worth is not None:
            assert abs(mine["custody_usd"] - worth) <= max(abs(worth) * Decimal("1e-12"), SHARE)
            assert mine["difference_usd"] == mine["custody_usd"] - value
    assert {row["status"] for row in found.values()} == {"known", "none", "unknown", "not_asked"}


def _worth(custody, flow, value):
    """What the bridge holds, at the price 3."""
    if custody is None or value is None:
        return None
    return custody * 3 if flow or not custody else None


def test_equal_amounts_have_equal_values_and_one_day_is_read_alone(made) -> None:
    _, _, query = made
    same = "SELECT count(*) AS n FROM wormhole.tvl_compared WHERE difference = 0"
    assert query(same)[0]["n"] > 20
    assert query(f"{same} AND flow_usd IS DISTINCT FROM custody_usd") == [{"n": 0}]
    assert query("SELECT DISTINCT date FROM wormhole.tvl_compared(DATE '2024-03-10')") == [{"date": DAYS[0]}]


def test_open_requests_count_what_is_still_unknown(made) -> None:
    _, told, query = made
    final = {row["origin_address"] for row in told if row["status"] != "unknown"}
    (request,) = [one for one in OPEN_REQUESTS if one.table == "token_custody"]
    (found,) = query(request.sql.replace("FROM token_custody", "FROM wormhole.token_custody"))
    assert (found["what"], found["reason"]) == ("ethereum (2)", "why")
    assert found["requests"] == len({row["origin_address"] for row in told} - final) > 10


def test_columns_have_the_types_of_the_contract(lake, made) -> None:
    schema = lake.query("SELECT * FROM wormhole.tvl_compared").schema
    table = Table("tvl_compared", "wormhole", "", TVL_COMPARED.columns, key=())
    assert dict(zip(schema.names, schema.types, strict=True)) == dict(
        zip(table.arrow.names, table.arrow.types, strict=True)
    )
