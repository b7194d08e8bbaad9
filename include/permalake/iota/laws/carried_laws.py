"""Laws of carried tables: the ledger and its owners at the ends of days, and what days changed."""

from __future__ import annotations

from collections.abc import Sequence

from permalake.audit.laws import balance, per_day, per_row, unpivoted, violations
from permalake.iota.contracts.ledger_changes import SIDES
from permalake.iota.laws.count_laws import one_row_a_day


def _changes() -> str:
    """Return a side of what days created and consumed, by kind."""
    measures = {measure: measure for measure in ("count", "amount", "bytes")}
    return unpivoted("ledger_changes", "kind || ' ' || side || ' ' || name", measures)


def _changes_carried() -> str:
    """Return the same as ledger_outputs has it."""
    names = [f"{side}_{measure}" for side in SIDES for measure in ("count", "amount", "bytes")]
    return unpivoted(
        "ledger_outputs", "kind || ' ' || name", {name.replace("_", " "): name for name in names}
    )


def _continued(table: str, key: str, measures: Sequence[str]) -> str:
    """Return a side of the unspent outputs a day earlier in the same chapter and what the day changed."""
    values = {
        f"unspent {measure}": f"coalesce(before_{measure}, 0) + created_{measure} - consumed_{measure}"
        for measure in measures
    }
    return unpivoted(_after_the_day_before(table, key, measures), f"{key} || ' ' || name", values)


def _unspent(table: str, key: str, measures: Sequence[str]) -> str:
    """Return a side of the unspent outputs at the day's end."""
    values = {f"unspent {measure}": f"unspent_{measure}" for measure in measures}
    return unpivoted(_after_the_day_before(table, key, measures), f"{key} || ' ' || name", values)


def _after_the_day_before(table: str, key: str, measures: Sequence[str]) -> str:
    """Return rows with ``before_…`` of the day before, where it is of the same chapter.

    A chapter is a span of days with the same ``since_milestone``; its first day begins at zero. Rows whose
    day before is not known are left out.
    """
    figures = [f"{moved}_{measure}" for moved in ("created", "consumed", "unspent") for measure in measures]
    columns = ", ".join(["date", key, "since_milestone", *figures])
    earlier = f"OVER (PARTITION BY {key} ORDER BY date)"
    before = ", ".join(
        f"CASE WHEN lag(since_milestone) {earlier} IS NOT DISTINCT FROM since_milestone "
        f"THEN lag(unspent_{measure}) {earlier} END AS before_{measure}"
        for measure in measures
    )
    return (
        f"SELECT lagged.* FROM (SELECT {columns}, is_judged, {before} FROM ("
        f"SELECT {columns}, true AS is_judged FROM {table} UNION ALL "
        f"SELECT {columns}, false AS is_judged FROM previous_{table})) AS lagged "
        "JOIN date_cache AS days ON lagged.date = days.date "
        f"WHERE is_judged AND (before_{measures[0]} IS NOT NULL OR since_milestone = days.start_ms)"
    )


# Days that continue although the day before does not end where they start.
_BROKEN_CHAPTERS = """
SELECT lagged.date AS date, 'history' AS place, 'cut at ' || days.start_ms AS expected,
    coalesce('counted from ' || lagged.since_milestone, 'whole') AS found
FROM (
    SELECT date, since_milestone, lag(milestone_index) OVER (ORDER BY date) AS ended
    FROM (
        SELECT date, milestone_index, since_milestone FROM ledger_totals UNION ALL
        SELECT date, milestone_index, since_milestone FROM previous_ledger_totals
    )
) AS lagged JOIN date_cache AS days ON lagged.date = days.date
WHERE lagged.since_milestone IS DISTINCT FROM days.start_ms AND ended + 1 <> days.start_ms
"""
_AT_CHECKPOINTS = """
SELECT balances.date AS date, balances.balance AS balance
FROM address_balances AS balances JOIN ledger_totals AS totals ON balances.date = totals.date
WHERE totals.checkpoint = totals.date
"""
# Ranks that are out of order or leave a number out.
_MISRANKED = """
SELECT date, 'rank ' || rank AS place, 'at most ' || richer AS expected, balance AS found
FROM (
    SELECT date, rank, balance, row_number() OVER (PARTITION BY date ORDER BY rank) AS place_in_row,
        lag(balance) OVER (PARTITION BY date ORDER BY rank) AS richer
    FROM richest_addresses
) WHERE rank <> place_in_row OR balance > richer
"""

LAWS = (
    one_row_a_day("totals_of_a_day", "ledger_totals", "ledger_totals"),
    balance(
        "active_on_the_day",
        "active_addresses",
        "The day's active addresses are those of daily_analytics.",
        expected=per_row("daily_analytics", addresses="total_addresses"),
        actual=per_row("SELECT * FROM active_addresses WHERE period = 'day'", addresses="addresses"),
    ),
    balance(
        "changes_are_carried",
        "ledger_outputs",
        "What the day created and consumed is in ledger_changes.",
        expected=_changes(),
        actual=_changes_carried(),
    ),
    *(
        balance(
            f"{table}_go_on",
            table,
            "What is unspent was unspent the day before, or was created, and was not consumed.",
            expected=_continued(table, key, measures),
            actual=_unspent(table, key, measures),
        )
        for table, key, measures in (
            ("ledger_outputs", "kind", ("count", "amount", "bytes")),
            ("unlock_conditions", "condition", ("count", "amount", "return_amount")),
        )
    ),
    violations(
        "history_is_whole",
        "ledger_totals",
        "Figures go on only from a day that ends where this one starts.",
        _BROKEN_CHAPTERS,
    ),
    balance(
        "ledger_adds_up",
        "ledger_totals",
        "The ledger's size is that of its outputs.",
        expected=per_day(
            "SELECT * FROM ledger_outputs WHERE kind <> 'treasury'",
            outputs="sum(unspent_count)",
            amount="sum(unspent_amount)",
        ),
        actual=per_row("ledger_totals", outputs="outputs", amount="amount"),
    ),
    balance(
        "distribution_adds_up",
        "token_distribution",
        "Balances add up to the ledger's amount.",
        expected=per_row("ledger_totals", amount="amount", holders="holders"),
        actual=per_day("token_distribution", amount="sum(amount)", holders="sum(addresses)"),
    ),
    balance(
        "checkpoints_are_whole",
        "address_balances",
        "At a checkpoint every balance is there.",
        expected=per_row(
            "SELECT * FROM ledger_totals WHERE checkpoint = date", amount="amount", holders="holders"
        ),
        actual=per_day(_AT_CHECKPOINTS, amount="sum(balance)", holders="count_if(balance <> 0)"),
    ),
    violations(
        "richest_in_order",
        "richest_addresses",
        "Ranks run from 1, and nobody is richer than an earlier rank.",
        _MISRANKED,
    ),
)
