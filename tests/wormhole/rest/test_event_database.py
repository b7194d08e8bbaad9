"""The event database's routes under ``/wormhole/edb``; what was wrong in its code are cases here."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from decimal import Decimal

import pytest
from fastapi.testclient import TestClient

from permalake.api.app import create_app
from support.served_wormhole import LAST_DAY, LATE_DAYS, SOLANA_TRANSACTION

BASE = "/wormhole/edb"


def test_totals_of_a_chain_leave_out_chains_with_the_same_first_digit(world) -> None:
    """A prefix of the row key took chains 10 to 19 for chain 1."""
    for chain in (1, 14, 15):
        expected = sum(r["emitter_chain"] == chain for r in world.rows["message_publication"])
        assert world.get(f"{BASE}/totals?forChain={chain}&numDays=30")["TotalCount"]["*"] == expected - sum(
            r["emitter_chain"] == chain and r["date"] < LAST_DAY - timedelta(30)
            for r in world.rows["message_publication"]
        )


def test_totals_by_day_and_address(world) -> None:
    found = world.get(f"{BASE}/totals?groupBy=address&numDays=2")
    counts = defaultdict(int)
    for row in world.rows["message_publication"]:
        if row["date"] >= LAST_DAY - timedelta(2):
            counts[f"{row['emitter_chain']}:{row['emitter_address']}"] += 1
    assert found["TotalCount"] == {"*": sum(counts.values()), **counts}
    assert len(found["DailyTotals"]) == 3
    assert all(day.keys() == found["TotalCount"].keys() for day in found["DailyTotals"].values())
    assert found["LastDayCount"] == found["DailyTotals"][LAST_DAY.isoformat()]


def test_notional_sums_of_every_level_agree(world) -> None:
    found = world.get(f"{BASE}/notionaltransferred?forPeriod=true&numDays=5&daily=true&last24Hours=true")
    total = sum(float(r["notional_usd"] or 0) for r in world.rows["notional_transferred_daily"])
    assert found["WithinPeriod"]["*"]["*"]["*"] == pytest.approx(total)
    for source, targets in found["WithinPeriod"].items():
        if source != "*":
            parts = sum(symbols["*"] for target, symbols in targets.items() if target != "*")
            assert targets["*"]["*"] == pytest.approx(parts, rel=1e-9, abs=1)
    days = sum(day["*"]["*"]["*"] for day in found["Daily"].values())
    assert days == pytest.approx(total)
    assert found["Last24Hours"] == found["Daily"][LAST_DAY.isoformat()]


def test_an_emitter_s_values_are_those_of_its_messages(world) -> None:
    row = next(r for r in world.rows["token_transfer_details"] if (r["notional_usd"] or 0) > 1)
    chain, emitter, _ = row["row_key"].split(":")
    expected = sum(
        float(r["notional_usd"] or 0)
        for r in world.rows["token_transfer_details"]
        if r["row_key"].startswith(f"{chain}:{emitter}:")
    )
    found = world.get(
        f"{BASE}/notionaltransferredto?forChain={chain}&forAddress={emitter}&forPeriod=1&numDays=10"
    )
    assert found["WithinPeriod"]["*"]["*"] == pytest.approx(expected)


def test_receivers_include_those_of_payload_3(world) -> None:
    """Transfers with payload were dropped."""
    with_payload = [r for r in world.rows["token_transfer_payload"] if r["payload_id"] == 3]
    assert with_payload
    found = world.get(f"{BASE}/addressestransferredto?forPeriod=true&numDays=10&amounts=1&counts=1")
    receivers = {r["row_key"]: r["receiver_address"] for r in world.rows["chain_details"]}
    for row in with_payload:
        address = receivers.get(row["row_key"]) or row["target_address"]
        assert address in found["WithinPeriodAmounts"][str(row["target_chain"])]
    counts = found["WithinPeriodCounts"]
    assert counts["*"] == sum(count for chain, count in counts.items() if chain != "*")
    per_day = world.get(f"{BASE}/addressestransferredto?daily=1")["DailyCounts"][LAST_DAY.isoformat()]
    expected = {
        str(r["target_chain"]): r["addresses"] for r in world.rows["addresses_daily"] if r["date"] == LAST_DAY
    }
    assert per_day.keys() - {"*"} == expected.keys()


def test_recent_by_address_is_keyed_with_a_colon(world) -> None:
    row = world.rows["message_publication"][-3]
    found = world.get(f"{BASE}/recent?groupBy=address&numRows=2")
    assert all(len(key.split(":")) == 2 for key in found)
    assert all(len(messages) <= 2 for messages in found.values())
    one = world.get(f"{BASE}/recent?forChain={row['emitter_chain']}&forAddress={row['emitter_address']}")
    assert list(one) == [f"{row['emitter_chain']}:{row['emitter_address']}"]
    assert set(world.get(f"{BASE}/recent?numRows=3")) == {"*"}


def test_recent_messages_of_all_groups_are_within_the_limit(published_world) -> None:
    """The limit was one of each emitter."""
    settings, rows = published_world
    emitters = {
        f"{row['emitter_chain']}:{row['emitter_address']}"
        for row in rows["message_publication"]
        if row["date"] >= LAST_DAY - timedelta(30)
    }
    limit = len(emitters) + 1
    serve = settings.serve.model_copy(update={"max_page_size": limit})
    with TestClient(create_app(settings.model_copy(update={"serve": serve}))) as client:
        found = client.get(f"{BASE}/recent?groupBy=address&numRows={limit}").json()
    assert found.keys() == emitters
    assert sum(map(len, found.values())) == limit
    times = [message["QuorumTime"] for messages in found.values() for message in messages[:1]]
    assert times == sorted(times, reverse=True)
    busiest = max(found.values(), key=len)
    newest = sorted((message["QuorumTime"] for message in busiest), reverse=True)
    assert [message["QuorumTime"] for message in busiest] == newest


def test_the_daily_value_locked_is_one_query_over_30_days(late_tvl, monkeypatch) -> None:
    reader, asked = late_tvl.client.app.state.reader, []
    read = reader.rows
    monkeypatch.setattr(reader, "rows", lambda query: asked.append(query) or read(query))
    late_tvl.get(f"{BASE}/notionaltvlcumulative?numDays=366")
    [query] = [query for query in asked if "attested_tokens" in query.scans]
    assert query.parameters == {"first": LATE_DAYS[1] - timedelta(30), "last": LATE_DAYS[1]}


def test_a_transaction_id_is_no_pattern(world) -> None:
    """The id went into a regular expression: ``.*`` found every row."""
    for pattern in (".*", "0x.*", "..."):
        answer = world.client.get(f"{BASE}/transaction", params={"id": pattern})
        assert answer.status_code in (400, 404)
    found = world.get(f"{BASE}/transaction?id={SOLANA_TRANSACTION}")
    assert found["Sequence"] == "8"


def test_a_row_is_read_by_post_too(world) -> None:
    transfer = world.rows["token_transfer_payload"][0]
    chain, emitter, sequence = transfer["row_key"].split(":")
    asked = {"emitterChain": chain, "emitterAddress": emitter, "sequence": str(int(sequence))}
    by_query = world.client.get(f"{BASE}/readrow", params=asked).json()
    by_body = world.client.post(f"{BASE}/readrow", json=asked).json()
    assert by_query == by_body
    assert by_query["TokenTransferPayload"]["Amount"] == transfer["amount"]


def test_negative_balances_are_told(world) -> None:
    held = {
        (r["origin_chain"], r["origin_address"]): r for r in world.rows["tvl_daily"] if r["date"] == LAST_DAY
    }
    negative = [key for key, r in held.items() if (r["amount"] or "").startswith("-")]
    assert negative
    found = world.get(f"{BASE}/notionaltvl?last24Hours=1")
    for chain, address in negative:
        assert found["AllTime"][str(chain)][address]["Amount"] < 0
    assert found["Last24HoursChange"]
    days = world.get(f"{BASE}/notionaltvlcumulative?numDays=2")["DailyLocked"]
    assert len(days) == 3
    assert days[LAST_DAY.isoformat()] == found["AllTime"]


def test_what_is_locked_is_of_the_newest_day_and_unknown_where_a_value_is(late_tvl) -> None:
    """A value of the last day alone counted as 0, and one that was unknown the day before as a change."""
    before, now = (
        {(r["origin_chain"], r["origin_address"]): r for r in late_tvl.rows["tvl_daily"] if r["date"] == day}
        for day in LATE_DAYS
    )
    found = late_tvl.get(f"{BASE}/notionaltvl?last24Hours=1")
    told = {None: 0, "known": 0, "new": 0}
    for token, row in now.items():
        chain, address = str(token[0]), token[1]
        usd, old = row["notional_usd"], before[token]["notional_usd"] if token in before else Decimal(0)
        expected = None if None in (usd, old) else float(usd - old)
        asset, change = (found[part][chain][address] for part in ("AllTime", "Last24HoursChange"))
        assert asset["Notional"] == (usd and pytest.approx(float(usd), abs=0.01))
        assert (asset["TokenPrice"] is None) == (usd is None)
        assert change["TokenPrice"] == asset["TokenPrice"]
        assert change["Notional"] == (expected and pytest.approx(expected, abs=0.01))
        told[None if expected is None else "known" if token in before else "new"] += 1
    assert all(told.values())
    total = sum(float(row["notional_usd"] or 0) for row in now.values())
    assert found["AllTime"]["*"]["*"]["Notional"] == pytest.approx(total)
    days = late_tvl.get(f"{BASE}/notionaltvlcumulative?numDays=4")["DailyLocked"]
    assert list(days) == [day.isoformat() for day in LATE_DAYS]
    assert days[LATE_DAYS[1].isoformat()] == found["AllTime"]


def test_bad_parameters_are_400_by_name(world) -> None:
    for query in ("numDays=x", "forChain=70000", "forAddress=00", "nosuch=1", "groupBy=token", "numRows=0"):
        detail = world.get(f"{BASE}/totals?{query}", 400)["detail"]
        assert query.partition("=")[0].lower().removeprefix("for") in detail.lower()
    assert world.client.post(f"{BASE}/totals", content=b"{").status_code == 400
    assert world.client.post(f"{BASE}/totals", content=b"[]").status_code == 400


def test_an_empty_lake(no_days) -> None:
    for route in ("totals", "nfts", "notionaltransferred", "notionaltvl", "recent", "addressestransferredto"):
        assert no_days.get(f"{BASE}/{route}").status_code == 200
