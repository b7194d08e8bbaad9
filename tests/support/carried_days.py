"""Days of a synthetic ledger as published tables: all that carrying reads of them, without Spark."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from permalake.config import Settings
from permalake.iota.contracts.ledger_changes import KINDS, LEDGER_CHANGES, SIDES
from support.jobs import job
from support.lakes import NETWORK, OpenLake, pass_audit, put

CARRIED = (
    *("active_addresses", "address_balances", "ledger_outputs", "ledger_totals", "richest_addresses"),
    *("token_distribution", "unlock_conditions"),
)
BYTES = 46


@dataclass
class LedgerDay:
    """A day of one milestone, and what moved: (sender, receiver, amount)."""

    day: date
    milestone: int
    moves: list[tuple[str, str, int]] = field(default_factory=list)

    @property
    def created(self) -> list[tuple[str, int]]:
        return [(receiver, amount) for _, receiver, amount in self.moves]

    @property
    def consumed(self) -> list[tuple[str, int]]:
        return [(sender, amount) for sender, _, amount in self.moves]

    def rows(self) -> dict[str, list[dict]]:
        changes: Counter[str] = Counter()
        for sign, moved in ((1, self.created), (-1, self.consumed)):
            for owner, amount in moved:
                changes[owner] += sign * amount
        noon = datetime.combine(self.day, datetime.min.time(), UTC) + timedelta(hours=12)
        return {
            "milestones": [
                {
                    "milestone_index": self.milestone,
                    "message_id": None,
                    "timestamp": int(noon.timestamp()),
                    "payload": None,
                    "milestone_id": f"{self.milestone:064x}",
                    "date": self.day,
                }
            ],
            "date_cache": [{"date": self.day, "start_ms": self.milestone, "end_ms": self.milestone}],
            "daily_analytics": [
                {
                    "year": self.day.year,
                    "date": self.day,
                    "total_addresses": len(changes),
                    "send_addresses": len({owner for owner, _ in self.consumed}),
                    "recv_addresses": len({owner for owner, _ in self.created}),
                }
            ],
            "balance_changes": [
                {"address": owner, "change": change, "is_active": 1, "date": self.day}
                for owner, change in sorted(changes.items())
            ],
            "ledger_changes": [
                self._moved(kind, side, moved if kind == "basic" else [])
                for kind in KINDS
                for side, moved in zip(SIDES, (self.created, self.consumed), strict=True)
            ],
        }

    def _moved(self, kind: str, side: str, moved: list[tuple[str, int]]) -> dict:
        amount = sum(one for _, one in moved)
        sums = {"count": len(moved), "amount": amount, "bytes": BYTES * len(moved), "deposit": amount}
        nothing = dict.fromkeys(LEDGER_CHANGES.names, 0)
        return nothing | sums | {"kind": kind, "side": side, "date": self.day}


def history(count: int, seed: int = 5, start: date = date(2022, 12, 20)) -> list[LedgerDay]:
    """Days over the turns of months and of a year; some are missing, and some milestones with them."""
    chance = random.Random(seed)
    owners = [f"smr1q{2 * name}qqqqq" for name in "acdefghjklmnpqrstuvwxyz023456789"]
    days: list[LedgerDay] = []
    day, milestone = start, 100
    while len(days) < count:
        day += timedelta(days=1)
        if chance.random() < 0.15:
            milestone += chance.random() < 0.3
            continue
        one = LedgerDay(day, milestone)
        one.moves = [
            (chance.choice(owners), chance.choice(owners), 10 ** chance.randrange(1, 9))
            for _ in range(chance.randrange(5))
        ]
        days.append(one)
        milestone += 1
    return days


def publish(settings: Settings, lake: OpenLake, days: list[LedgerDay], run_id: str) -> None:
    """Publish days as one build."""
    with lake.builds.begin(NETWORK, days[0].day, days[-1].day, run_id, wait=300) as attempt:
        tables: dict[str, list[dict]] = {}
        for day in days:
            for name, rows in day.rows().items():
                tables.setdefault(name, []).extend(rows)
        for name, rows in tables.items():
            put(settings, attempt, name, rows)
        lake.builds.publish(pass_audit(attempt))


def carry(spark, run_id: str) -> None:  # type: ignore[no-untyped-def]
    """Run the job ``carry``; its days do not matter."""
    days = ["--start", "2022-09-28", "--end", "2022-09-28"]
    job("carry")(["--network", NETWORK, *days, "--run-id", run_id], spark)


def carried(lake: OpenLake) -> dict[str, list[dict]]:
    """Every row of the carried tables, in order."""
    return {name: lake.query(f"select * from {NETWORK}.{name} order by all").to_pylist() for name in CARRIED}
