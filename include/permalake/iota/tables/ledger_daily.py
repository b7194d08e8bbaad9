"""The ledger by kind of output and by unlock condition: what days change, and its state at their ends.

Makes ``ledger_changes``, and the carried ``ledger_outputs``, ``unlock_conditions`` and sizes in
``ledger_totals``, with the definitions of inx-chronicle's ``ledger`` analytics. An output weighs its id (34
bytes) as key, and its bytes and 40 bytes of metadata (block id, milestone index and time) as data (TIP-19).
Its storage deposit is the rent for that weight, at most its amount.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from permalake.iota.codec.outputs import TREASURY
from permalake.iota.cone.decoded import Row, of_kind
from permalake.iota.cone.source_records import InclusionState
from permalake.iota.contracts.ledger_changes import CONDITIONS, KINDS, SIDES
from permalake.iota.tables.carried_sums import GOES_ON, Chained, Rows, running
from permalake.iota.tables.output_tables import KIND_NAMES

_KEY_BYTES, _METADATA_BYTES, _KEY_WEIGHT = 34, 40, 10
_TREASURY_BYTES = 9
_FIELDS = ("kind", "amount", "length", "timelock_time", "expiration_time", "storage_return_amount")
_HOLDS = {
    "timelock": "timelock_time",
    "expiration": "expiration_time",
    "storage_deposit_return": "storage_return_amount",
}
_OUTPUTS = ("count", "amount", "bytes")
_CONDITIONED = ("count", "amount", "return_amount")
_NOTHING = dict.fromkeys(
    (
        *_OUTPUTS,
        *(f"{condition}_{measure}" for condition in CONDITIONS for measure in ("count", "amount")),
        *("returned", "deposit"),
    ),
    0,
)


def ledger_changes(decoded: DataFrame, date_cache: DataFrame, v_byte_cost: int | None) -> DataFrame:
    """Return ``ledger_changes``: every kind and side on every day, of transactions and receipts."""
    moved = sums(_of_transactions(decoded).unionByName(_of_receipts(decoded)), v_byte_cost)
    every = date_cache.select(
        "date",
        F.explode(F.array(*map(F.lit, KINDS))).alias("kind"),
    ).select("*", F.explode(F.array(*map(F.lit, SIDES))).alias("side"))
    zeros = [name for name in _NOTHING if name != "deposit" or v_byte_cost is not None]
    return every.join(moved, ["date", "kind", "side"], "left").fillna(0, subset=zeros)


def sums(moves: DataFrame, v_byte_cost: int | None) -> DataFrame:
    """Return sums per (date, kind, side), at most a dozen rows a day.

    Args:
        moves: Outputs with the wire's kind, ``amount``, ``length`` and unlock conditions.
        v_byte_cost: Rent per weighted byte in base tokens; ``deposit`` is null without it.
    """
    weight = F.col("length") + (_KEY_WEIGHT * _KEY_BYTES + _METADATA_BYTES)
    rent = F.lit(v_byte_cost).cast("long") * weight
    deposit = F.when(rent.isNotNull(), F.least(rent, "amount"))
    conditioned = [
        total.alias(f"{condition}_{measure}")
        for condition, field in _HOLDS.items()
        for measure, total in (
            ("count", F.count_if(F.col(field) > 0)),
            ("amount", F.coalesce(F.sum(F.when(F.col(field) > 0, F.col("amount"))), F.lit(0))),
        )
    ]
    side = F.when(F.col("is_created"), SIDES[0]).otherwise(SIDES[1])
    return moves.groupBy("date", kind_name(F.col("kind")).alias("kind"), side.alias("side")).agg(
        F.count("*").alias("count"),
        F.sum("amount").alias("amount"),
        F.sum("length").alias("bytes"),
        *conditioned,
        F.sum("storage_return_amount").alias("returned"),
        F.sum(deposit).alias("deposit"),
    )


def kind_name(kind: Column) -> Column:
    """Return the tables' name of a wire kind."""
    return F.coalesce(*(F.when(kind == code, name) for code, name in KIND_NAMES.items()))


def changes_before(outputs: Rows, conditions: Rows, totals: Rows) -> list[dict[str, Any]]:
    """Return the same from the carried tables, for days that were built without their changes.

    ``outputs``, ``conditions`` and ``totals`` are rows of ``ledger_outputs``, ``unlock_conditions`` and, with
    the day before them, ``ledger_totals``. What these do not tell by kind stands in rows without a kind.
    """
    found = []
    for row in outputs:
        for side in SIDES:
            values = {name: row[f"{side}_{name}"] for name in _OUTPUTS}
            found.append({"date": row["date"], "kind": row["kind"], "side": side, **_NOTHING, **values})
    for row in conditions:
        at = row["condition"]
        for side in SIDES:
            held = {f"{at}_count": row[f"{side}_count"], f"{at}_amount": row[f"{side}_amount"]}
            returned = row[f"{side}_return_amount"]
            found.append(
                {"date": row["date"], "kind": None, "side": side, **_NOTHING, **held, "returned": returned}
            )
    last: Mapping[str, Any] | None = None
    for row in sorted(totals, key=lambda one: one["date"]):
        goes_on = last is not None and last["since_milestone"] == row["since_milestone"]
        known = last["storage_deposit"] if last and goes_on else 0
        total = row["storage_deposit"]
        deposit = None if total is None or known is None else total - known
        found.append({"date": row["date"], "kind": None, "side": SIDES[0], **_NOTHING, "deposit": deposit})
        last = row
    return found


def ledger_outputs(flows: Rows, days: Sequence[Chained], state: Rows) -> list[dict[str, Any]]:
    """Return ``ledger_outputs``: every kind on every day. ``state``: its rows of the day before."""
    return _ledger(flows, days, state, key="kind", values=KINDS, measures=_OUTPUTS)


def unlock_conditions(flows: Rows, days: Sequence[Chained], state: Rows) -> list[dict[str, Any]]:
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
    found: dict[date, int | None] = {}
    chapter, total = GOES_ON, before
    for day in days:
        if day.chapter != chapter:
            chapter, total = day.chapter, 0
        total = None if total is None or day.day in unknown else total + changes[day.day]
        found[day.day] = total
    return found


def _sign(flow: Mapping[str, Any]) -> int:
    return 1 if flow["side"] == SIDES[0] else -1


def ledger_size(ledger_outputs: Rows, day: date, storage_deposit: int | None, rented: bool) -> dict[str, Any]:
    """Return the ledger's size at the end of a day. ``rented``: outputs need a storage deposit (Stardust)."""
    held = [row for row in ledger_outputs if row["date"] == day and row["kind"] != "treasury"]
    outputs = sum(row["unspent_count"] for row in held)
    keys = _KEY_BYTES * outputs
    data = _METADATA_BYTES * outputs + sum(row["unspent_bytes"] for row in held)
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
) -> list[dict[str, Any]]:
    """Return what each day created and consumed, and what is unspent at its end."""
    columns = [f"{side}_{name}" for side in ("created", "consumed", "unspent") for name in measures]
    moved = {(day.day, value): dict.fromkeys(columns, 0) for day in days for value in values}
    for flow in flows:
        row = moved.get((flow["date"], flow[key]))
        if row is None:  # without a kind, or without milestones
            continue
        for name in measures:
            row[f"{flow['side']}_{name}"] += flow[name]
            row[f"unspent_{name}"] += _sign(flow) * flow[name]
    changes = [{"date": day, key: value, **row} for (day, value), row in moved.items()]
    unspent = running(days, key, [f"unspent_{name}" for name in measures], changes, state)
    return [moved[row["date"], row[key]] | row for row in unspent]


def _of_transactions(decoded: DataFrame) -> DataFrame:
    # Lists of fields, zipped: so only these fields of the outputs are read.
    included = of_kind(decoded, Row.BLOCK).where(F.col("inclusion_state") == int(InclusionState.INCLUDED))

    def zipped(outputs: str, is_created: bool) -> Column:
        fields = F.arrays_zip(*(F.col(f"{outputs}.{name}") for name in _FIELDS))
        return F.transform(
            fields,
            lambda one: F.struct(
                F.lit(is_created).alias("is_created"), *(one[name].alias(name) for name in _FIELDS)
            ),
        )

    moves = F.concat(zipped("outputs", True), zipped("consumed", False))
    return included.select("date", F.explode(moves).alias("move")).select("date", "move.*")


def _of_receipts(decoded: DataFrame) -> DataFrame:
    """Return the funds that receipts create, and the treasury before and after."""

    def move(is_created: bool, kind: Column, amount: Column, length: Column) -> Column:
        return F.struct(
            F.lit(is_created).alias("is_created"),
            *(kind.cast("byte").alias("kind"), amount.alias("amount"), length.cast("int").alias("length")),
            *(F.lit(0).cast("long").alias(name) for name in _FIELDS[3:]),
        )

    left, treasury = F.col("receipt.treasury_output"), (F.lit(TREASURY), F.lit(_TREASURY_BYTES))
    deposits = F.aggregate("receipt.funds", F.lit(0).cast("long"), lambda total, fund: total + fund["amount"])
    funds = F.transform(
        "receipt.funds", lambda fund: move(True, fund["kind"], fund["amount"], F.length(fund["data"]))
    )
    before = move(False, treasury[0], left + deposits, treasury[1])
    after = move(True, treasury[0], left, treasury[1])
    return (
        of_kind(decoded, Row.MILESTONE)
        .where("receipt is not null")
        .select("date", F.explode(F.concat(funds, F.array(before, after))).alias("move"))
        .select("date", "move.*")
    )
