"""Addresses: their balances and activity at the days' ends.

Makes the carried ``address_balances``, ``token_distribution``, ``richest_addresses`` and
``active_addresses``. An output belongs to its address unlock condition or state controller, expired or not
(as in inx-chronicle). ``state`` frames are (address, balance, active_on) at the end of the day before the
range.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from permalake.iota.contracts.carried import PERIODS
from permalake.iota.tables.carried_sums import GOES_ON, Chained, Rows, running

_BELOW_ZERO, _MOST_DIGITS = -1, 19
BUCKETS = range(_BELOW_ZERO, _MOST_DIGITS)


def state(balances: DataFrame) -> DataFrame:
    """Return (address, balance, active_on) from the rows of ``address_balances`` since a checkpoint."""
    last = F.max_by(F.struct("balance", "active_on"), "date").alias("last")
    return balances.groupBy("address").agg(last).select("address", "last.*")


def touched(balance_changes: DataFrame) -> DataFrame:
    """Return (date, address, delta, is_active) from rows of ``balance_changes``."""
    active = (F.col("is_active") == 1).alias("is_active")
    return balance_changes.select("date", "address", F.col("change").alias("delta"), active)


def touched_before(balances: DataFrame) -> DataFrame:
    """Return the same from rows of ``address_balances``, for days that were built without their changes.

    ``balances`` begin with a checkpoint, whose own changes are not to be read from the result.
    """
    earlier = Window.partitionBy("address", "since_milestone").orderBy("date")
    delta = F.col("balance") - F.coalesce(F.lag("balance").over(earlier), F.lit(0))
    active = F.coalesce(F.col("active_on") == F.col("date"), F.lit(False))
    rows = balances.select("date", "address", delta.alias("delta"), active.alias("is_active"))
    return rows.where("delta <> 0 OR is_active")


def changes(touched: DataFrame, days: DataFrame, state: DataFrame) -> DataFrame:
    """Return the state of each touched address before and after each day.

    Columns: date, address, chapter, since_milestone, before, balance, is_active, active_before, active_on,
    until. ``until`` is the date of the address's next change in the range. ``active_before`` is null where it
    does not count any more: a checkpoint forgets such a date, so rows would depend on where a run began.
    """
    by_address = Window.partitionBy("address").orderBy("date")
    so_far = Window.partitionBy("address", "chapter").orderBy("date")
    earlier = by_address.rowsBetween(Window.unboundedPreceding, -1)
    began = F.when(F.col("chapter") == GOES_ON, F.col("held")).otherwise(0)
    held = state.select("address", F.col("balance").alias("held"), F.col("active_on").alias("was_active_on"))
    return (
        touched.join(F.broadcast(days), "date")
        .join(held, "address", "left")
        .select(
            *("date", "address", "chapter", "since_milestone", "checkpoint", "is_active", "delta"),
            (F.sum("delta").over(so_far) + F.coalesce(began, F.lit(0))).alias("balance"),
            F.coalesce(
                F.max(F.when(F.col("is_active"), F.col("date"))).over(earlier), F.col("was_active_on")
            ).alias("active_before"),
            F.lead("date").over(by_address).alias("until"),
        )
        .withColumn("active_before", F.when(F.col("active_before") >= _counting(), F.col("active_before")))
        .select(
            "*",
            (F.col("balance") - F.col("delta")).alias("before"),
            F.when(F.col("is_active"), F.col("date")).otherwise(F.col("active_before")).alias("active_on"),
        )
    )


def standing(changes: DataFrame, state: DataFrame) -> DataFrame:
    """Return (address, balance, active_on, chapter, since, until): balances with the days that they hold on.

    A balance holds at the ends of the days from ``since`` to before ``until``; null is unbounded.
    """
    first = changes.groupBy("address").agg(F.min("date").alias("until"))
    kept = state.join(first, "address", "left").select(
        "address",
        "balance",
        "active_on",
        F.lit(GOES_ON).alias("chapter"),
        F.lit(None).cast("date").alias("since"),
        "until",
    )
    changed = changes.select(
        "address", "balance", "active_on", "chapter", F.col("date").alias("since"), "until"
    )
    return kept.unionByName(changed)


def address_balances(changes: DataFrame, standing: DataFrame, days: DataFrame) -> DataFrame:
    """Return ``address_balances``: changes; at a checkpoint every address that counts."""
    at_checkpoint = F.col("checkpoint") == F.col("date")
    alive = (F.col("balance") != 0) | (F.col("active_on") >= _counting())
    columns = ("address", "balance", "active_on", "since_milestone", "date")
    whole = _at_ends(standing, days.where(at_checkpoint)).where(alive)
    return changes.where(~at_checkpoint).select(*columns).unionByName(whole.select(*columns))


def richest_addresses(standing: DataFrame, days: DataFrame, number: int) -> DataFrame:
    """Return ``richest_addresses``: the first ``number`` of each day.

    Of the balances that do not change in the range at most ``number`` can be among them.
    """
    order = (F.desc("balance"), F.col("address"))
    unmoved = F.col("since").isNull() & F.col("until").isNull()
    largest = standing.where(unmoved & (F.col("balance") > 0)).orderBy(*order).limit(number)
    candidates = standing.where(~unmoved & (F.col("balance") > 0)).unionByName(largest)
    rank = F.row_number().over(Window.partitionBy("date").orderBy(*order)).alias("rank")
    held = _at_ends(candidates, days).where("balance > 0")
    ranked = held.select("address", "balance", "since_milestone", "date", rank)
    return ranked.where(F.col("rank") <= number)


def summary(changes: DataFrame) -> DataFrame:
    """Return what each day changed, a row a day.

    ``addresses`` and ``amounts`` are by bucket of balances. ``newly`` counts addresses by period, on the
    first day of the period on which they are active. ``fingerprint`` is the XOR of the old and new states of
    the changed addresses, and turns the running fingerprint into that of the new state.
    """
    now, was = _bucket(F.col("balance")), _bucket(F.col("before"))
    nothing = F.lit(0).cast("long")

    def amount(balance: str, bucket: Column) -> Column:
        return F.coalesce(F.sum(F.when(bucket, F.col(balance))), nothing)

    def is_new(period: str) -> Column:
        start = F.col("date") if period == "day" else F.trunc("date", period)
        return F.col("is_active") & (F.col("active_before").isNull() | (F.col("active_before") < start))

    turned = F.xxhash64("address", "balance", "active_on").bitwiseXOR(
        F.xxhash64("address", "before", "active_before")
    )
    return changes.groupBy("date").agg(
        F.array(*(F.count_if(now == at) - F.count_if(was == at) for at in BUCKETS)).alias("addresses"),
        F.array(*(amount("balance", now == at) - amount("before", was == at) for at in BUCKETS)).alias(
            "amounts"
        ),
        F.array(*(F.count_if(is_new(period)) for period in PERIODS)).alias("newly"),
        F.bit_xor(turned).alias("fingerprint"),
    )


def token_distribution(summaries: Rows, days: Sequence[Chained], state: Rows) -> list[dict[str, Any]]:
    """Return ``token_distribution``; ``state``: its rows of the day before the range."""
    moves = [
        {"date": row["date"], "bucket": bucket, "addresses": addresses, "amount": amount}
        for row in summaries
        for bucket, addresses, amount in zip(BUCKETS, row["addresses"], row["amounts"], strict=True)
        if addresses or amount
    ]
    rows = running(days, "bucket", ("addresses", "amount"), moves, state)
    return [row for row in rows if row["addresses"]]


def active_addresses(summaries: Rows, days: Sequence[Chained], state: Rows) -> list[dict[str, Any]]:
    """Return ``active_addresses``; ``state``: its rows of the day before the range."""
    newly = {row["date"]: dict(zip(PERIODS, row["newly"], strict=True)) for row in summaries}
    last = {row["period"]: dict(row) for row in state}
    rows: list[dict[str, Any]] = []
    for day in days:
        for period, start in periods(day.day).items():
            known = last.get(period)
            goes_on = known is not None and known["start_date"] == start
            before = (known["days"], known["addresses"]) if known and goes_on else (0, 0)
            new = newly.get(day.day, {}).get(period, 0)
            last[period] = {
                "period": period,
                "start_date": start,
                "days": before[0] + 1,
                "addresses": before[1] + new,
                "date": day.day,
            }
        rows += last.values()
    return rows


def fingerprints(summaries: Rows, days: Sequence[Chained], before: int) -> dict[date, int]:
    """Return the fingerprint of all addresses at each day's end; ``before``: that of the day before."""
    turns = {row["date"]: row["fingerprint"] for row in summaries}
    found, chapter, last = {}, GOES_ON, before
    for day in days:
        last = turns.get(day.day, 0) ^ (last if day.chapter == chapter else 0)
        chapter = day.chapter
        found[day.day] = last
    return found


def periods(day: date) -> dict[str, date]:
    """Return the first dates of the periods that a day lies in."""
    first = {
        "day": day,
        "week": day - timedelta(days=day.weekday()),
        "month": day.replace(day=1),
        "year": day.replace(month=1, day=1),
    }
    return {period: first[period] for period in PERIODS}


def _at_ends(standing: DataFrame, days: DataFrame) -> DataFrame:
    """Return balances at the ends of ``days``; zero where the history is cut since they were known."""
    ends = days.select("date", "since_milestone", F.col("chapter").alias("day_chapter"))
    stands = (F.col("since").isNull() | (F.col("since") <= F.col("date"))) & (
        F.col("until").isNull() | (F.col("date") < F.col("until"))
    )
    known = F.when(F.col("chapter") == F.col("day_chapter"), F.col("balance")).otherwise(0)
    return standing.join(F.broadcast(ends), stands).select(
        "date", "address", "active_on", "since_milestone", known.alias("balance")
    )


def _counting() -> Column:
    """Return the first date of which activity counts in a period of ``date``."""
    return F.least(F.trunc("date", "year"), F.trunc("date", "week"))


def _bucket(balance: Column) -> Column:
    """Return the power of ten of a balance, -1 below zero; null for zero."""
    digits = F.length(balance.cast("string"))
    return F.when(balance < 0, _BELOW_ZERO).when(balance > 0, digits - 1)
