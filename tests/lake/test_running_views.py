"""Views that run on from day to day, against plain Python over the same rows."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction

import pytest
from fastapi.testclient import TestClient

from permalake.api.app import create_app
from permalake.config import Settings
from support.lakes import NETWORK, OpenLake, pass_audit, put

FIRST, DAYS = date(2022, 12, 10), 60
GREAT = 2**255
TOKENS = [f"{number:076x}" for number in range(1, 4)]
OWNERS = [f"smr1q{name}qqqqqq" for name in "acdefghjklmnpqrstuvwxyz02345"]
NETWORKS = {NETWORK: {"protocol": "stardust", "bech32_hrp": "smr", "path": "."}}


class History:
    """Days of random transfers, mints and melts of tokens, and of active addresses; some days are missing."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.held = {}  # (output id, token) -> (owner, amount)
        self.counters = {token: [0, 0] for token in TOKENS}
        self.days = [
            FIRST + timedelta(number) for number in range(DAYS) if number % 9 and self.chance.random() < 0.8
        ]
        self.rows = {day: defaultdict(list) for day in self.days}
        self.number = 0
        for day in self.days:
            for _ in range(self.chance.randrange(5)):
                self._transaction(day)
            self._activity(day)

    def _transaction(self, day):
        chance, token = self.chance, self.chance.choice(TOKENS)
        self.number += 1
        transaction, moment = f"{self.number:064x}", datetime.combine(day, time(12), UTC)
        mine = [key for key in self.held if key[1] == token]
        used = chance.sample(mine, min(len(mine), chance.randrange(3)))
        total, makers = 0, []
        for key in used:
            owner, amount = self.held.pop(key)
            # One output in ten has expired: another address unlocks it.
            unlocker = chance.choice(OWNERS) if chance.random() < 0.1 else owner
            total, makers = total + amount, [*makers, owner]
            self._moved(day, key, 1, unlocker, amount, transaction, moment)
        change = chance.choice([0, 0, GREAT // 7, 5, -5])
        change = max(change, -total) if self.counters[token][0] + max(change, 0) < 2**256 else 0
        if change:
            self.counters[token][0] += max(change, 0)
            self.counters[token][1] += max(-change, 0)
            minted, melted = map(str, self.counters[token])
            state = {"foundry_id": token, "minted_tokens": minted, "melted_tokens": melted, "date": day}
            made = {"output_id": f"{transaction}ff00", "milestone_index": self.number, "amount": 1}
            self.rows[day]["foundry_outputs"].append({**state, **made, "ms_timestamp": moment, "data": b"-"})
        left, index = total + change, 0
        while left > 0:
            amount = left if index == 2 or left < 9 else chance.randrange(1, left)
            owner = chance.choice([*makers, chance.choice(OWNERS)])
            key = f"{transaction}{index:02x}00", token
            self.held[key] = owner, amount
            self._moved(day, key, 0, owner, amount, transaction, moment)
            left, index = left - amount, index + 1

    def _moved(self, day, key, is_spent, address, amount, transaction, moment):
        self.rows[day]["native_tokens"].append(
            {
                "output_id": key[0],
                "token_id": key[1],
                "is_spent": is_spent,
                "amount": str(amount),
                "address": address,
                "transaction_id": transaction,
                "milestone_index": self.number,
                "ms_timestamp": moment,
                "date": day,
            }
        )

    def _activity(self, day):
        active = self.chance.sample(OWNERS, self.chance.randrange(4))
        self.rows[day]["address_analytics"] = [
            {"address": one, "milestone_index": index, "sent_tokens": 1, "recv_tokens": 1, "date": day}
            for one in active
            for index in range(self.chance.randrange(1, 3))
        ]
        self.rows[day]["date_cache"] = [{"date": day, "start_ms": 1, "end_ms": 2}]


def written(folder, days):
    """A lake with rows by day and table."""
    settings = Settings(lake={"warehouse": str(folder / "warehouse")}, networks=NETWORKS)
    lake = OpenLake(settings)
    attempt = lake.begin(NETWORK, min(days), max(days), "run")
    for table in {name for tables in days.values() for name in tables}:
        put(settings, attempt, table, [row for tables in days.values() for row in tables.get(table, [])])
    lake.builds.publish(pass_audit(attempt))
    return settings, lake


@pytest.fixture(scope="module")
def history():
    return History(seed=22)


@pytest.fixture(scope="module")
def world(history, tmp_path_factory):
    return written(tmp_path_factory.mktemp("running"), history.rows)


def supplies(history):
    """Rows of token_supply_daily, from balances kept in a dictionary."""
    owners, balances, rows = {}, defaultdict(Counter), []
    counters = dict.fromkeys(TOKENS, (None, None))
    for day in history.days:
        tables, moves = history.rows[day], defaultdict(lambda: defaultdict(Counter))
        for row in sorted(tables["native_tokens"], key=lambda row: (row["transaction_id"], row["is_spent"])):
            if not row["is_spent"]:
                owners[row["output_id"], row["token_id"]] = row["address"]
        for row in tables["native_tokens"]:
            owner, sign = owners[row["output_id"], row["token_id"]], -1 if row["is_spent"] else 1
            moves[row["token_id"]][row["transaction_id"]][owner] += sign * int(row["amount"])
            balances[row["token_id"]][owner] += sign * int(row["amount"])
        for row in tables["foundry_outputs"]:
            counters[row["foundry_id"]] = row["minted_tokens"], row["melted_tokens"]
        for token in sorted({*moves, *(row["foundry_id"] for row in tables["foundry_outputs"])}):
            given = [one for one in moves[token].values() if min(one.values()) < 0 < max(one.values())]
            held = [one for one in balances[token].values() if one]
            rows.append((day, token, *counters[token], str(sum(held)), len(held), len(given)))
    return rows


def test_supplies_of_tokens(history, world) -> None:
    _, lake = world
    wanted = supplies(history)
    names = "date, token_id, minted, melted, circulating, holders, transfers"
    found = lake.query(
        f"SELECT {names} FROM {NETWORK}.token_supply_daily ORDER BY date, token_id"
    ).to_pylist()
    assert [tuple(row.values()) for row in found] == wanted
    assert max(int(row[4]) for row in wanted) > 2**128
    assert {0, 1} < {row[6] for row in wanted}
    assert all(int(row[4]) == int(row[2]) - int(row[3]) for row in wanted)
    half = history.days[len(history.days) // 2]
    earlier = lake.query(
        f"SELECT {names} FROM {NETWORK}.token_supply_daily('{half}') ORDER BY 1, 2"
    ).to_pylist()
    assert [tuple(row.values()) for row in earlier] == [row for row in wanted if row[0] <= half]


def test_supplies_of_a_lake_that_begins_later_are_at_least_those(history, tmp_path) -> None:
    """Outputs from before its first day count nowhere, neither while held nor once they are spent."""
    rest = {day: history.rows[day] for day in history.days[len(history.days) // 3 :]}
    _, lake = written(tmp_path, rest)
    owners, spent_before = {}, 0
    for day in sorted(rest):
        rows = sorted(rest[day]["native_tokens"], key=lambda row: (row["transaction_id"], row["is_spent"]))
        for row in sorted(rows, key=lambda row: row["is_spent"]):
            key = row["output_id"], row["token_id"]
            if not row["is_spent"]:
                owners[key] = row["address"], int(row["amount"])
            elif owners.pop(key, None) is None:
                spent_before += 1
        told = lake.query(
            "SELECT token_id, circulating, holders FROM "
            f"(SELECT *, row_number() OVER (PARTITION BY token_id ORDER BY date DESC) AS age "
            f"FROM {NETWORK}.token_supply_daily('{day}')) WHERE age = 1"
        ).to_pylist()
        for row in told:
            held = [value for (_, token), value in owners.items() if token == row["token_id"]]
            assert int(row["circulating"]) == sum(amount for _, amount in held)
            assert row["holders"] == len({owner for owner, _ in held})
    assert spent_before > 3


def test_rolling_addresses(history, world) -> None:
    _, lake = world
    active = {day: {row["address"] for row in history.rows[day]["address_analytics"]} for day in history.days}
    wanted = []
    for day in history.days:
        for length in (1, 7, 30):
            begin = day - timedelta(length - 1)
            inside = set().union(*(those for at, those in active.items() if begin <= at <= day))
            before = set().union(*(those for at, those in active.items() if at < begin))
            wanted.append((day, length, len(inside), len(inside - before), len(inside & before)))
    names = "date, days, active_addresses, new_addresses, returning_addresses"
    found = lake.query(f"SELECT {names} FROM {NETWORK}.rolling_addresses ORDER BY date, days").to_pylist()
    assert [tuple(row.values()) for row in found] == wanted
    assert all(any(row[place] for row in wanted) for place in (2, 3, 4))


@pytest.mark.parametrize("table", ["token_supply_daily", "rolling_addresses"])
def test_a_range_of_dates_is_that_part_of_all(history, world, table) -> None:
    """What runs on is computed from all days, whatever dates a request names."""
    settings, lake = world
    first, last = history.days[20], history.days[25]
    key = "token_id" if table == "token_supply_daily" else "days"
    rows = lake.query(
        f"SELECT * FROM {NETWORK}.{table} WHERE date BETWEEN '{first}' AND '{last}' ORDER BY date, {key}"
    ).to_pylist()
    path = f"/api/analytics/v1/{NETWORK}/{table}?start={first}&end={last}"
    with TestClient(create_app(settings)) as client:
        page = client.get(f"{path}&sort=oldest&pageSize=1000").json()["items"]
        exported = client.get(f"{path}&format=csv").text.splitlines()
    assert rows
    assert page == [row | {"date": row["date"].isoformat()} for row in rows]
    assert len(exported) == 1 + len(rows)


BALANCES = {
    "one": {"a": 5},
    "equal": dict.fromkeys("abcd", 7),
    "skewed": {f"{number:03d}": 3**number for number in range(30)},
    "many": {f"{number:03d}": 10**15 + number % 7 for number in range(150)},
}


@pytest.mark.parametrize("case", BALANCES)
def test_concentration_of_balances(case, tmp_path) -> None:
    """Two rows of an address count as the later one; balances of zero and of before the checkpoint do not."""
    before, checkpoint, day = date(2022, 9, 30), date(2022, 10, 1), date(2022, 10, 3)
    totals = [
        {"date": before, "checkpoint": before, "since_milestone": None, "milestone_index": 1},
        {"date": checkpoint, "checkpoint": checkpoint, "since_milestone": None, "milestone_index": 2},
        {"date": day, "checkpoint": checkpoint, "since_milestone": None, "milestone_index": 3},
    ]
    held = [
        {"address": "smr1gone", "balance": 10**18, "date": before},
        *({"address": f"smr1{one}", "balance": 9, "date": checkpoint} for one in BALANCES[case]),
        *(
            {"address": f"smr1{one}", "balance": amount, "date": day}
            for one, amount in BALANCES[case].items()
        ),
        {"address": "smr1empty", "balance": 0, "date": day},
    ]
    rows = {
        at: {
            "ledger_totals": [row for row in totals if row["date"] == at],
            "address_balances": [row for row in held if row["date"] == at],
        }
        for at in (before, checkpoint, day)
    }
    _, lake = written(tmp_path, rows)
    [found] = lake.query(f"SELECT * FROM {NETWORK}.concentration").to_pylist()
    amounts = sorted(BALANCES[case].values(), reverse=True)
    count, total = len(amounts), sum(amounts)
    # The mean difference of all pairs, relative to twice the mean.
    gini = Fraction(sum(abs(one - other) for one in amounts for other in amounts), 2 * count * total)
    assert (found["date"], found["addresses"], found["amount"]) == (day, count, total)
    assert found["gini"] == pytest.approx(float(gini), abs=1e-12)
    assert found["top_10_share"] == pytest.approx(sum(amounts[:10]) / total)
    assert found["top_100_share"] == pytest.approx(sum(amounts[:100]) / total)
    [early] = lake.query(f"SELECT * FROM {NETWORK}.concentration(DATE '2022-10-02')").to_pylist()
    assert (early["date"], early["amount"]) == (checkpoint, 9 * count)
