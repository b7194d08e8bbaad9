"""The ledger by kind of output and by unlock condition: its state at the days' ends.

Makes the carried ``ledger_outputs``, ``unlock_conditions`` and sizes in ``ledger_totals``, with the
definitions of inx-chronicle's ``ledger`` analytics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from permalake.contracts.rows import Row
from permalake.iota.contracts.ledger_changes import CONDITIONS, KEY_BYTES, KINDS, METADATA_BYTES, SIDES
from permalake.iota.tables.carried_sums import CONTINUED, Chained, Rows, running

_OUTPUTS = ("count", "amount", "bytes")
_CONDITIONED = ("count", "amount", "return_amount")


def ledger_outputs(flows: Rows, days: Sequence[Chained], state: Rows) -> list[Row]:
    """Return ``ledger_outputs``: every kind on every day. ``state``: its rows of the day before."""
    return _ledger(flows, days, state, key="kind", values=KINDS, measures=_OUTPUTS)


def unlock_conditions(flows: Rows, days: Sequence[Chained], state: Rows) -> list[Row]:
    """Return ``unlock_conditions``: every condition on every day. ``state``: rows of the day before."""
    each = [
        {
            "date": flow["date"],
            "side": flow["side"],
            "condition": condition,
            "count": flow[f"{condition}_count"],
            "amount": flow[f"{condition}_amount"],
            "return_amount": flow["returned"] if condition == "storage_deposit_return" else 0,
        }
        for flow in flows
        for condition in CONDITIONS
    ]
    return _ledger(each, days, state, key="condition", values=CONDITIONS, measures=_CONDITIONED)


def storage_deposits(flows: Rows, days: Sequence[Chained], before: int | None) -> dict[date, int | None]:
    """Return the storage deposit of all unspent outputs at each day's end (base tokens).

    ``before`` is that of the day before the range; where it is None, days that continue from it have None.
    """
    changes: Counter[date] = Counter()
    unknown = set()
    for flow in flows:
        if flow["kind"] == "treasury":
            continue
        if flow["deposit"] is None:
            unknown.add(flow["date"])
        else:
            changes[flow["date"]] += _sign(flow) * flow["deposit"]
    deposits: dict[date, int | None] = {}
    chapter, total = CONTINUED, before
    for day in days:
        if day.chapter != chapter:
            chapter, total = day.chapter, 0
        total = None if total is None or day.day in unknown else total + changes[day.day]
        deposits[day.day] = total
    return deposits


def _sign(flow: Mapping[str, Any]) -> int:
    return 1 if flow["side"] == SIDES[0] else -1


def ledger_size(ledger_outputs: Rows, day: date, storage_deposit: int | None, rented: bool) -> Row:
    """Return the ledger's size at the end of a day. ``rented``: outputs need a storage deposit (Stardust)."""
    held = [row for row in ledger_outputs if row["date"] == day and row["kind"] != "treasury"]
    outputs = sum(row["unspent_count"] for row in held)
    keys = KEY_BYTES * outputs
    data = METADATA_BYTES * outputs + sum(row["unspent_bytes"] for row in held)
    return {
        "outputs": outputs,
        "amount": sum(row["unspent_amount"] for row in held),
        "key_bytes": keys if rented else None,
        "data_bytes": data if rented else None,
        "storage_deposit": storage_deposit if rented else None,
    }


def _ledger(
    flows: Rows,
    days: Sequence[Chained],
    state: Rows,
    *,
    key: str,
    values: Sequence[str],
    measures: Sequence[str],
) -> list[Row]:
    """Return what each day created and consumed, and what is unspent at its end."""
    columns = [f"{side}_{name}" for side in ("created", "consumed", "unspent") for name in measures]
    moved = {(day.day, value): dict.fromkeys(columns, 0) for day in days for value in values}
    for flow in flows:
        row = moved.get((flow["date"], flow[key]))
        if row is None:  # without milestones
            continue
        for name in measures:
            row[f"{flow['side']}_{name}"] += flow[name]
            row[f"unspent_{name}"] += _sign(flow) * flow[name]
    changes = [{"date": day, key: value, **row} for (day, value), row in moved.items()]
    unspent = running(days, key, [f"unspent_{name}" for name in measures], changes, state)
    return [moved[row["date"], row[key]] | row for row in unspent]
