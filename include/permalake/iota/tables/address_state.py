"""Addresses: their balances and activity at the days' ends.

Makes the carried ``address_balances``, ``token_distribution``, ``richest_addresses`` and
``active_addresses``. An output belongs to its address unlock condition or state controller, expired or not
(as in inx-chronicle).

What grows with addresses is SQL. Queries read ``days`` (:data:`DAYS`), ``balance_changes`` of the days
and ``balances_before``: rows of ``address_balances`` since the last checkpoint before them. :func:`steps` are
kept under their names, as later ones read them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date, timedelta

import pyarrow as pa

from permalake.contracts.rows import Row
from permalake.iota.contracts.carried import PERIODS
from permalake.iota.tables.carried_sums import CONTINUED, Chained, Rows, running

_BELOW_ZERO = -1
_ALWAYS, _NEVER = "DATE '0001-01-01'", "DATE '9999-12-31'"
DAYS = pa.schema(
    [
        ("date", pa.date32()),
        ("chapter", pa.int32()),
        ("since_milestone", pa.int32()),
        ("checkpoint", pa.date32()),
        *((f"{period}_start", pa.date32()) for period in PERIODS),
        # Activity before it counts in no period of the date.
        ("counting", pa.date32()),
    ]
)


def days_table(days: Sequence[Chained]) -> pa.Table:
    """Return days as queries read them."""
    rows = []
    for day in days:
        starts = periods(day.day)
        named = {f"{period}_start": start for period, start in starts.items()}
        row = {"chapter": day.chapter, "checkpoint": day.checkpoint, "counting": min(starts.values())}
        rows.append(day.stamp | row | named)
    return pa.Table.from_pylist(rows, DAYS)


def steps(*, from_ledger: date | None) -> dict[str, str]:
    """Return the queries to keep, in order: ``state``, ``touched`` and ``changes``.

    Args:
        from_ledger: The day that ends with a ledger that is known from outside; ``known_balances`` has it.
    """
    return {"state": _STATE, "touched": _touched(from_ledger), "changes": _CHANGES}


# Each address at the end of the day before.
_STATE = """
SELECT address, arg_max_null(balance, date) AS balance, arg_max_null(active_on, date) AS active_on
FROM balances_before GROUP BY address
"""


def _touched(from_ledger: date | None) -> str:
    """Return the query of what each day changed of each address: (date, address, delta, is_active)."""
    changes = "SELECT date, address, change AS delta, is_active = 1 AS is_active FROM balance_changes"
    if from_ledger is not None:
        changes += f" UNION ALL SELECT DATE '{from_ledger}', address, balance, false FROM known_balances"
    return changes


# The state of each touched address before and after each day; ``until`` is the date of its next change.
# ``active_before`` is null where it does not count any more: a checkpoint forgets such a date, so rows would
# depend on where a run began.
_CHANGES = f"""
WITH moved AS (
    SELECT moved.date, moved.address, moved.delta, moved.is_active, here.chapter, here.since_milestone,
        here.checkpoint, here.counting, held.active_on AS was_active_on,
        CASE WHEN here.chapter = {CONTINUED} THEN coalesce(held.balance, 0) ELSE 0 END AS held
    FROM touched AS moved JOIN days AS here ON moved.date = here.date
    LEFT JOIN state AS held ON moved.address = held.address
), summed AS (
    SELECT date, address, chapter, since_milestone, checkpoint, counting, is_active, delta,
        CAST(held + sum(delta) OVER (PARTITION BY address, chapter ORDER BY date) AS BIGINT) AS balance,
        coalesce(max(CASE WHEN is_active THEN date END) OVER (
            PARTITION BY address ORDER BY date ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), was_active_on) AS last_active_on,
        coalesce(lead(date) OVER (PARTITION BY address ORDER BY date), {_NEVER}) AS until
    FROM moved
), counted AS (
    SELECT summed.*, CASE WHEN last_active_on >= counting THEN last_active_on END AS active_before FROM summed
)
SELECT date, address, chapter, since_milestone, checkpoint, is_active, balance,
    balance - delta AS balance_before, active_before,
    CASE WHEN is_active THEN date ELSE active_before END AS active_on, until
FROM counted
"""

# Balances with the days at whose ends they hold: from ``since`` to before ``until``.
_STANDING = f"""
SELECT held.address, held.balance, held.active_on, {CONTINUED} AS chapter, {_ALWAYS} AS since,
    coalesce(moved.until, {_NEVER}) AS until
FROM state AS held LEFT JOIN (SELECT address, min(date) AS until FROM changes GROUP BY address) AS moved
    ON held.address = moved.address
UNION ALL SELECT address, balance, active_on, chapter, date AS since, until FROM changes
"""


def address_balances(days: Sequence[Chained]) -> str:
    """Return the query of ``address_balances``: changes; at a checkpoint every address that counts.

    Balances are zero where the history is cut since they were known.
    """
    columns = "address, balance, active_on, since_milestone, date"
    changed = f"SELECT {columns} FROM changes WHERE date <> checkpoint AND date >= DATE '{days[0].day}'"
    if all(day.day != day.checkpoint for day in days):
        return changed
    return f"""
{changed} UNION ALL SELECT {columns} FROM (
    SELECT held.address, held.active_on, here.since_milestone, here.date, here.counting,
        CASE WHEN held.chapter = here.chapter THEN held.balance ELSE 0 END AS balance
    FROM ({_STANDING}) AS held
    JOIN (SELECT * FROM days WHERE date = checkpoint AND date >= DATE '{days[0].day}') AS here
        ON held.since <= here.date AND here.date < held.until
) AS whole WHERE balance <> 0 OR active_on >= counting
"""


def richest_addresses(days: Sequence[Chained], number: int, distribution: Rows) -> str:
    """Return the query of ``richest_addresses``: the first ``number`` of each day.

    Of the balances that do not change in the range at most ``number`` can be among them, and of all balances
    only those in the largest buckets of ``distribution``, rows of ``token_distribution``.
    """
    first, order = f"DATE '{days[0].day}'", "balance DESC, address"
    unmoved = f"since < {first} AND until = {_NEVER}"
    least = min(_least_of_the_richest(distribution, days, number))
    return f"""
WITH held AS (
    SELECT * FROM ({_STANDING}) AS standing WHERE balance >= {least}
), candidates AS (
    SELECT * FROM held WHERE NOT ({unmoved})
    UNION ALL SELECT * FROM (SELECT * FROM held WHERE {unmoved} ORDER BY {order} LIMIT {number}) AS largest
), ranked AS (
    SELECT one.address, one.balance, here.since_milestone, here.date,
        row_number() OVER (PARTITION BY here.date ORDER BY {order}) AS rank
    FROM candidates AS one
    JOIN days AS here ON one.chapter = here.chapter AND one.since <= here.date AND here.date < one.until
    WHERE here.date >= {first}
)
SELECT * FROM ranked WHERE rank <= {number}
"""


def _least_of_the_richest(distribution: Rows, days: Sequence[Chained], number: int) -> Iterator[int]:
    """Yield for each day a balance that none of its richest addresses is below."""
    counts: dict[date, Counter[int]] = {}
    for row in distribution:
        counts.setdefault(row["date"], Counter())[row["bucket"]] = row["addresses"]
    for day in days:
        buckets = counts.get(day.day, Counter())
        enough = (b for b in buckets if b > 0 and sum(n for at, n in buckets.items() if at >= b) >= number)
        yield 10 ** max(enough, default=0)


def moves() -> str:
    """Return the query of what each day changed of the buckets of balances, a row for each that changed."""
    sides = (("balance", 1), ("balance_before", -1))
    stacked = " UNION ALL ".join(
        f"SELECT date, {_bucket(name)} AS bucket, {sign} AS addresses, {sign} * {name} AS amount "
        f"FROM changes WHERE {name} <> 0"
        for name, sign in sides
    )
    return f"""
SELECT date, bucket, CAST(sum(addresses) AS BIGINT) AS addresses, CAST(sum(amount) AS BIGINT) AS amount
FROM ({stacked}) AS every GROUP BY date, bucket
"""


def turns() -> str:
    """Return the query of what each day changed of all addresses together, a row a day.

    Columns named after a period count addresses on the first day of it on which they are active. The XOR of
    both ``fingerprint_…`` columns turns the running fingerprint into that of the new state.
    """
    newly = (
        f"count_if(is_active AND (active_before IS NULL OR active_before < {period}_start)) AS newly_{period}"
        for period in PERIODS
    )
    return f"""
SELECT changed.date, {", ".join(newly)},
    bit_xor(spark_xxhash64(address, balance, active_on)) AS fingerprint_now,
    bit_xor(spark_xxhash64(address, balance_before, active_before)) AS fingerprint_before
FROM changes AS changed JOIN days AS here ON changed.date = here.date GROUP BY changed.date
"""


def _bucket(balance: str) -> str:
    """Return the power of ten of a balance that is not zero; -1 below zero."""
    return f"CASE WHEN {balance} < 0 THEN {_BELOW_ZERO} ELSE length(CAST({balance} AS STRING)) - 1 END"


def token_distribution(moves: Rows, days: Sequence[Chained], state: Rows) -> list[Row]:
    """Return ``token_distribution``; ``state``: its rows of the day before the range."""
    rows = running(days, "bucket", ("addresses", "amount"), moves, state)
    return [row for row in rows if row["addresses"]]


def active_addresses(turns: Rows, days: Sequence[Chained], state: Rows) -> list[Row]:
    """Return ``active_addresses``; ``state``: its rows of the day before the range."""
    newly = {row["date"]: row for row in turns}
    last = {row["period"]: dict(row) for row in state}
    rows: list[Row] = []
    for day in days:
        for period, start in periods(day.day).items():
            current = last.get(period)
            continues = current is not None and current["start_date"] == start
            before = (current["days"], current["addresses"]) if current and continues else (0, 0)
            new = newly.get(day.day, {}).get(f"newly_{period}", 0)
            last[period] = {
                "period": period,
                "start_date": start,
                "days": before[0] + 1,
                "addresses": before[1] + new,
                "date": day.day,
            }
        rows += last.values()
    return rows


def fingerprints(turns: Rows, days: Sequence[Chained], before: int) -> dict[date, int]:
    """Return the fingerprint of all addresses at each day's end; ``before``: that of the day before."""
    turned = {row["date"]: row["fingerprint_now"] ^ row["fingerprint_before"] for row in turns}
    prints, chapter, last = {}, CONTINUED, before
    for day in days:
        last = turned.get(day.day, 0) ^ (last if day.chapter == chapter else 0)
        chapter = day.chapter
        prints[day.day] = last
    return prints


def periods(day: date) -> dict[str, date]:
    """Return the first dates of the periods that a day lies in."""
    first = {
        "day": day,
        "week": day - timedelta(days=day.weekday()),
        "month": day.replace(day=1),
        "year": day.replace(month=1, day=1),
    }
    return {period: first[period] for period in PERIODS}
