"""Transfers in flight and times to redemption, beside a second computation in plain Python."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from datetime import UTC, date, datetime, time, timedelta

import pytest

from permalake.contracts import Table
from permalake.wormhole.contracts.redemption_views import VIEWS
from support.lakes import pass_audit, put

DAYS = (date(2024, 3, 10), date(2024, 3, 11))
EMITTER = "ee" * 32
NOON = [datetime.combine(day, time(12), UTC) for day in DAYS]
LATER = datetime(2024, 3, 20, tzinfo=UTC)


def _made():
    """Messages, transfers by table, and answers: seeded, with every mixture of answers."""
    chance = random.Random(5)
    rows = defaultdict(list)
    for number in range(240):
        at = number % 2
        key, day = f"{chance.choice((2, 4))}:{EMITTER}:{number:016d}", DAYS[at]
        sent = NOON[at] + timedelta(seconds=number)
        rows["message_publication"].append(_message(key, sent, day))
        table = "nft_transfer_payload" if number % 11 == 0 else "token_transfer_payload"
        target = chance.choice((1, 5, 6))
        rows[table].append(_transfer(table, key, target, day))
        for source in ("wormholescan", "rpc"):
            status = chance.choice((None, "in_flight", "failed", "completed"))
            if status and (source, status) != ("rpc", "failed"):
                rows["redemptions"].append(_answer(chance, key, target, day, sent, source, status))
    return rows


def _message(key, sent, day):
    chain, emitter, sequence = key.split(":")
    return {
        **{
            "row_key": key,
            "version": 1,
            "guardian_set_index": 1,
            "timestamp": sent,
            "nonce": 0,
            "payload": b"",
        },
        **{"emitter_chain": int(chain), "emitter_address": emitter, "sequence": int(sequence)},
        **{"digest": "00" * 32, "date": day},
    }


def _transfer(table, key, target, day):
    row = {"row_key": key, "payload_id": 1, "origin_address": "aa" * 32, "origin_chain": 2, "date": day}
    row |= {"target_address": "bb" * 32, "target_chain": target}
    nft = {"symbol": "", "name": "", "token_id": "1", "uri": ""}
    return row | (nft if table == "nft_transfer_payload" else {"amount": "1", "fee": "0"})


def _answer(chance, key, target, day, sent, source, status):
    is_timed = status == "completed" and chance.random() < 0.8
    return {
        **{"row_key": key, "target_chain": target, "source": source, "status": status, "date": day},
        "target_tx_id": f"0x{source}" if status != "in_flight" else None,
        "redeemed_at": sent + timedelta(seconds=chance.randrange(10, 90_000)) if is_timed else None,
        "asked_at": LATER + timedelta(seconds=chance.randrange(1000)),
    }


@pytest.fixture
def made(settings, lake):
    rows = _made()
    attempt = lake.begin("wormhole", *DAYS, "run")
    for table, own in rows.items():
        put(settings, attempt, table, own)
    lake.builds.publish(pass_audit(attempt))
    return rows, lambda sql: lake.query(sql).to_pylist()


def _best(rows):
    """The answer that counts of each transfer."""
    best = {}
    for row in rows["redemptions"]:
        is_better = (row["status"] == "completed", row["redeemed_at"] is not None, row["asked_at"])
        if row["row_key"] not in best or is_better > best[row["row_key"]][0]:
            best[row["row_key"]] = is_better, row
    return {key: row for key, (_, row) in best.items()}


def _sent(rows):
    published = {row["row_key"]: row for row in rows["message_publication"]}
    for bridge in ("token", "nft"):
        for row in rows[f"{bridge}_transfer_payload"]:
            yield bridge, row, published[row["row_key"]]


def test_times_and_counts_are_those_of_plain_python(made) -> None:
    rows, query = made
    best = _best(rows)
    expected = defaultdict(lambda: {"states": [], "seconds": []})
    for _, transfer, message in _sent(rows):
        answer = best.get(transfer["row_key"])
        of = expected[transfer["date"], message["emitter_chain"], transfer["target_chain"]]
        of["states"].append(answer and answer["status"])
        if answer and answer["status"] == "completed" and answer["redeemed_at"]:
            of["seconds"].append(int((answer["redeemed_at"] - message["timestamp"]).total_seconds()))
    found = query("SELECT * FROM wormhole.redemption_times_daily")
    assert len(found) == len(expected) == 12
    for row in found:
        of = expected[row["date"], row["emitter_chain"], row["target_chain"]]
        states, seconds = of["states"], sorted(of["seconds"])
        redeemed, not_asked = states.count("completed"), states.count(None)
        counts = (len(states), redeemed, len(states) - redeemed - not_asked, not_asked, len(seconds))
        assert counts == tuple(
            row[name] for name in ("transfers", "redeemed", "in_flight", "not_asked", "timed")
        )
        assert row["transfers"] == row["redeemed"] + row["in_flight"] + row["not_asked"]
        assert row["median_seconds"] == seconds[math.ceil(len(seconds) / 2) - 1]
        assert row["p90_seconds"] == seconds[math.ceil(len(seconds) * 9 / 10) - 1]


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_columns_have_the_types_of_the_contract(lake, view, made) -> None:
    schema = lake.query(f"SELECT * FROM wormhole.{view.name}").schema
    table = Table(view.name, view.group, view.doc, view.columns, key=())
    assert dict(zip(schema.names, schema.types, strict=True)) == dict(
        zip(table.arrow.names, table.arrow.types, strict=True)
    )


def test_transfers_in_flight_are_those_that_somebody_was_asked_about(made) -> None:
    rows, query = made
    best = _best(rows)
    expected = {
        transfer["row_key"]: (bridge, message["emitter_chain"], transfer["target_chain"], answer["status"])
        for bridge, transfer, message in _sent(rows)
        if (answer := best.get(transfer["row_key"])) and answer["status"] != "completed"
    }
    found = query("SELECT * FROM wormhole.transfers_in_flight")
    columns = ("bridge", "emitter_chain", "target_chain", "status")
    assert {row["row_key"]: tuple(row[name] for name in columns) for row in found} == expected
    assert {"in_flight", "failed"} == {row["status"] for row in found}
    total = query("SELECT CAST(sum(in_flight) AS BIGINT) AS n FROM wormhole.redemption_times_daily")
    assert total == [{"n": len(found)}]
