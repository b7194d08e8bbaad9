"""A walk over a synthetic tangle's ledger, output by output, in plain Python: what the metrics must be.

It reads the archive's consumed outputs and the generator's expected rows, and shares no code with the
transforms but bech32.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import date, timedelta

import numpy as np

from permalake.iota.codec.bech32 import encode_addresses
from support.iota_days import SYNTHETIC, expected, tangle

KINDS = {0: "legacy", 1: "legacy", 2: "treasury", 3: "basic", 4: "alias", 5: "foundry", 6: "nft"}
ADDRESS, RETURN, TIMELOCK, EXPIRATION, STATE_CONTROLLER, GOVERNOR, IMMUTABLE = range(7)
NAMES = {RETURN: "storage_deposit_return", TIMELOCK: "timelock", EXPIRATION: "expiration"}


@dataclass
class Output:
    """What of an output counts: ``conditions`` by name, with what a storage deposit returns.

    ``expires``: the unix time from which on it belongs to an address.
    """

    kind: str
    amount: int
    size: int
    owner: str | None
    conditions: dict[str, int] = field(default_factory=dict)
    expires: tuple[int, str] | None = None

    def holder(self, time):
        """Who may unlock it at a time."""
        return self.expires[1] if self.expires and self.expires[0] <= time else self.owner


def parse(raw, hrp):
    """An output from its bytes (TIP-7, TIP-18)."""
    kind = raw[0]
    if kind == 2:
        return Output("treasury", int.from_bytes(raw[1:9], "little"), len(raw), None)
    if kind < 2:
        return Output("legacy", int.from_bytes(raw[34:42], "little"), len(raw), text(raw[1], raw[2:34], hrp))
    amount, at = int.from_bytes(raw[1:9], "little"), 10 + 70 * raw[9]
    if kind == 4:
        at += 32 + 4
        at += 2 + int.from_bytes(raw[at : at + 2], "little") + 4
    if kind == 5:
        at += 4 + 1 + 3 * 32
    if kind == 6:
        at += 32
    owner, conditions, expires = None, {}, None
    count, at = raw[at], at + 1
    for _ in range(count):
        condition, at = raw[at], at + 1
        if condition == TIMELOCK:
            conditions[NAMES[condition]], at = 0, at + 4
            continue
        address, at = text(raw[at], raw[at + 1 : at + 33], hrp), at + 33
        if condition in (ADDRESS, STATE_CONTROLLER, IMMUTABLE):
            owner = address
        elif condition == RETURN:
            conditions[NAMES[condition]], at = int.from_bytes(raw[at : at + 8], "little"), at + 8
        elif condition == EXPIRATION:
            expires = int.from_bytes(raw[at : at + 4], "little"), address
            conditions[NAMES[condition]], at = 0, at + 4
    return Output(KINDS[kind], amount, len(raw), owner, conditions, expires)


def text(kind, value, hrp):
    raw = np.frombuffer(value, np.uint8).reshape(1, 32)
    return encode_addresses(hrp, np.array([kind], np.int16), raw)[0].as_py()


@dataclass
class Day:
    """What a day created and consumed, and who was active."""

    date: date
    first: int
    last: int
    created: list[Output] = field(default_factory=list)
    consumed: list[Output] = field(default_factory=list)
    active: set[str] = field(default_factory=set)


def days_of(protocol):
    """The days of a synthetic tangle."""
    hrp = tangle(protocol)["bech32_hrp"]
    days = [
        Day(date.fromisoformat(row["date"]), row["start_ms"], row["end_ms"])
        for row in expected(protocol, "date_cache")
    ]

    def day(milestone):
        return next(one for one in days if one.first <= milestone <= one.last)

    tables = [f"{kind}_outputs" for kind in ("basic", "alias", "foundry", "nft", "legacy", "treasury")]
    for row in (row for table in tables for row in expected(protocol, table)):
        day(row["milestone_index"]).created.append(parse(bytes.fromhex(row["data"]), hrp))
    archive = SYNTHETIC / protocol / "archive" / "consumed_outputs.jsonl.gz"
    for line in gzip.decompress(archive.read_bytes()).decode().splitlines():
        row = json.loads(line)
        day(row["milestone"]).consumed.append(parse(bytes.fromhex(row["rawOutput"].removeprefix("0x")), hrp))
    for row in expected(protocol, "metrics_cache"):
        if row["metric"] == "sent_or_received":
            next(one for one in days if one.date.isoformat() == row["date"]).active.add(row["value"])
    _treasury(protocol, day)
    return sorted(days, key=lambda one: one.date)


def moved_tokens(protocol):
    """What included transactions moved to other addresses, by milestone index."""
    hrp = tangle(protocol)["bech32_hrp"]
    times = {row["milestone_index"]: row["timestamp"] for row in expected(protocol, "milestones")}
    gains = defaultdict(Counter)
    archive = SYNTHETIC / protocol / "archive" / "consumed_outputs.jsonl.gz"
    for line in gzip.decompress(archive.read_bytes()).decode().splitlines():
        row = json.loads(line)
        output = parse(bytes.fromhex(row["rawOutput"].removeprefix("0x")), hrp)
        place = row["milestone"], row["transactionIdSpent"].removeprefix("0x")
        gains[place][output.holder(times[row["milestone"]])] -= output.amount
    for kind in ("basic", "alias", "foundry", "nft", "legacy"):
        for row in expected(protocol, f"{kind}_outputs"):
            place = row["milestone_index"], row["output_id"][:64]
            if place in gains:  # no receipt
                output = parse(bytes.fromhex(row["data"]), hrp)
                gains[place][output.holder(times[place[0]])] += output.amount
    moved = dict.fromkeys(times, 0)
    for (milestone, _), addresses in gains.items():
        moved[milestone] += sum(gain for gain in addresses.values() if gain > 0)
    return moved


def _treasury(protocol, day):
    """A receipt consumes what the treasury held: what it pays out and leaves."""
    receipts = {row["output_id"]: row for row in expected(protocol, "treasury_outputs")}
    paid = Counter()
    for kind in ("legacy", "basic"):
        for row in expected(protocol, f"{kind}_outputs"):
            if row["output_id"][:64] in receipts:
                paid[row["output_id"][:64]] += row["amount"]
    for receipt, row in receipts.items():
        held = Output("treasury", row["amount"] + paid[receipt], 9, None)
        day(row["milestone_index"]).consumed.append(held)


def measured(days, richest):
    """Rows of the running tables, by table, of days of which the first one cuts history."""
    rows = defaultdict(list)
    unspent, conditioned, balance = defaultdict(Counter), defaultdict(Counter), Counter()
    active_on, since, before = {}, None, None
    seen = defaultdict(set)
    for day in days:
        if before is None or before.last + 1 != day.first:
            since, before = day.first, None
            unspent.clear(), conditioned.clear(), balance.clear()
        at = {"since_milestone": since, "date": day.date.isoformat()}
        flow, under = defaultdict(Counter), defaultdict(Counter)
        touched = set(day.active)
        for side, sign, outputs in (("created", 1, day.created), ("consumed", -1, day.consumed)):
            for one in outputs:
                for name, value in (("count", 1), ("amount", one.amount), ("bytes", one.size)):
                    flow[one.kind][f"{side}_{name}"] += value
                    unspent[one.kind][f"unspent_{name}"] += sign * value
                for condition, returned in one.conditions.items():
                    for name, value in (("count", 1), ("amount", one.amount), ("return_amount", returned)):
                        under[condition][f"{side}_{name}"] += value
                        conditioned[condition][f"unspent_{name}"] += sign * value
                if one.owner:
                    touched.add(one.owner)
                    balance[one.owner] += sign * one.amount
        active_on |= dict.fromkeys(day.active, day.date)
        for kind in sorted(set(KINDS.values())):
            rows["ledger_outputs"].append(
                _row(("count", "amount", "bytes"), kind=kind, **at) | flow[kind] | unspent[kind]
            )
        for condition in NAMES.values():
            rows["unlock_conditions"].append(
                _row(("count", "amount", "return_amount"), condition=condition, **at)
                | under[condition]
                | conditioned[condition]
            )
        rows["token_distribution"] += _buckets(balance, at)
        rows["richest_addresses"] += _richest(balance, richest, at)
        for period, start in periods(day.date).items():
            seen[period, start] |= day.active
            counted = sum(start <= one.date <= day.date for one in days)
            rows["active_addresses"].append(
                {
                    "period": period,
                    "start_date": start.isoformat(),
                    "days": counted,
                    "addresses": len(seen[period, start]),
                    "date": at["date"],
                }
            )
        is_checkpoint = before is None or before.date.month != day.date.month
        counting = min(day.date.replace(month=1, day=1), day.date - timedelta(days=day.date.weekday()))
        alive = {one for one, on in active_on.items() if on >= counting} | {
            one for one in balance if balance[one]
        }
        for address in alive if is_checkpoint else touched:
            on = active_on.get(address)
            rows["address_balances"].append(
                {"address": address, "balance": balance[address], "active_on": on and on.isoformat(), **at}
            )
        before = day
    return rows


def _row(measures, **values):
    sides = ("created", "consumed", "unspent")
    return values | {f"{side}_{name}": 0 for side in sides for name in measures}


def _buckets(balance, at):
    found = defaultdict(list)
    for value in balance.values():
        if value:
            found[len(str(value)) - 1 if value > 0 else -1].append(value)
    return [{"bucket": b, "addresses": len(v), "amount": sum(v), **at} for b, v in found.items()]


def _richest(balance, number, at):
    order = sorted((-value, address) for address, value in balance.items() if value > 0)[:number]
    return [
        {"rank": rank, "address": address, "balance": -value, **at}
        for rank, (value, address) in enumerate(order, start=1)
    ]


def periods(day):
    """First dates of the periods that a day lies in."""
    monday = day - timedelta(days=day.weekday())
    return {"day": day, "week": monday, "month": day.replace(day=1), "year": day.replace(month=1, day=1)}
