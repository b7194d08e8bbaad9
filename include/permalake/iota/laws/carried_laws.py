"""Laws of carried tables: the ledger and its owners at the ends of days, and what days changed."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from permalake.audit.laws import Frame, balance, per_day, per_row, violations
from permalake.audit.scope import Scope
from permalake.iota.contracts.ledger_changes import SIDES
from permalake.iota.laws.change_laws import of_kind
from permalake.iota.laws.count_laws import one_row_a_day


def _changes(scope: Scope) -> DataFrame:
    """Return what days created and consumed, by kind."""
    values = {one: one for one in ("count", "amount", "bytes")}
    return of_kind(scope("ledger_changes"), "concat(kind, ' ', side, ' ')", **values)


def _changes_carried(scope: Scope) -> DataFrame:
    """Return the same as ledger_outputs has it, of days that were built with their changes."""
    names = [f"{side}_{one}" for side in SIDES for one in ("count", "amount", "bytes")]
    values = {name.replace("_", " "): name for name in names}
    told = scope("ledger_changes").select("date").distinct()
    rows = scope("ledger_outputs").join(F.broadcast(told), "date", "left_semi")
    return of_kind(rows, "concat(kind, ' ')", **values)


def _continued(table: str, key: str, measures: Sequence[str]) -> Frame:
    """Return a side of the unspent outputs a day earlier in the same chapter and what the day changed."""

    def side(scope: Scope) -> DataFrame:
        frame = _after_the_day_before(scope, table, key, measures)
        values = {
            f"unspent {one}": f"coalesce(before_{one}, 0) + created_{one} - consumed_{one}"
            for one in measures
        }
        return of_kind(frame, f"concat({key}, ' ')", **values)

    return side


def _unspent(table: str, key: str, measures: Sequence[str]) -> Frame:
    """Return a side of the unspent outputs at the day's end."""

    def side(scope: Scope) -> DataFrame:
        frame = _after_the_day_before(scope, table, key, measures)
        return of_kind(
            frame, f"concat({key}, ' ')", **{f"unspent {one}": f"unspent_{one}" for one in measures}
        )

    return side


def _after_the_day_before(scope: Scope, table: str, key: str, measures: Sequence[str]) -> DataFrame:
    """Return rows with ``before_…`` of the day before, where it is of the same chapter.

    A chapter is a span of days with the same ``since_milestone``; its first day begins at zero. Rows whose
    day before is not known are left out.
    """
    rows = scope(table).select("*", F.lit(True).alias("is_judged"))
    known = scope.before(table)
    if known is not None:
        rows = rows.unionByName(known.select("*", F.lit(False).alias("is_judged")))
    earlier = Window.partitionBy(key).orderBy("date")
    continues = F.lag("since_milestone").over(earlier).eqNullSafe(F.col("since_milestone"))
    starts = scope("date_cache").select("date", "start_ms")
    lagged = rows.select(
        "*",
        *(
            F.when(continues, F.lag(f"unspent_{one}").over(earlier)).alias(f"before_{one}")
            for one in measures
        ),
    )
    return (
        lagged.where("is_judged")
        .join(F.broadcast(starts), "date")
        .where(f"before_{measures[0]} IS NOT NULL OR since_milestone = start_ms")
    )


def _broken_chapters(scope: Scope) -> DataFrame:
    """Return the days that continue although the day before does not end where they start."""
    ends = scope("ledger_totals").select("date", "milestone_index", "since_milestone")
    known = scope.before("ledger_totals")
    if known is not None:
        ends = ends.unionByName(known.select(*ends.columns))
    by_date = Window.orderBy("date")
    lagged = ends.select("*", F.lag("milestone_index").over(by_date).alias("last"))
    wrong = "since_milestone <> start_ms AND last IS NOT NULL AND last + 1 <> start_ms"
    return (
        lagged.join(F.broadcast(scope("date_cache")), "date")
        .where(wrong)
        .selectExpr(
            "date",
            "'history' AS place",
            "concat('cut at ', start_ms) AS expected",
            "concat('counted from ', since_milestone) AS found",
        )
    )


def _held_by_addresses(scope: Scope) -> DataFrame:
    """Return sum and number of the balances at checkpoints."""
    days = scope("ledger_totals").where("checkpoint = date").select("date")
    balances = scope("address_balances").join(F.broadcast(days), "date")
    return per_day(balances, amount="sum(balance)", holders="count_if(balance <> 0)")


def _misranked(scope: Scope) -> DataFrame:
    """Return the ranks that are out of order or leave a number out."""
    by_rank = Window.partitionBy("date").orderBy("rank")
    rows = scope("richest_addresses").select(
        *("date", "rank", "balance"),
        F.row_number().over(by_rank).alias("place_in_row"),
        F.lag("balance").over(by_rank).alias("richer"),
    )
    return rows.where("rank <> place_in_row OR balance > richer").selectExpr(
        "date", "concat('rank ', rank) AS place", "concat('at most ', richer) AS expected", "balance AS found"
    )


LAWS = (
    one_row_a_day("totals_of_a_day", "ledger_totals", "ledger_totals"),
    balance(
        "active_on_the_day",
        "active_addresses",
        "The day's active addresses are those of daily_analytics.",
        expected=lambda scope: per_row(scope("daily_analytics"), addresses="total_addresses"),
        found=lambda scope: per_row(scope("active_addresses").where("period = 'day'"), addresses="addresses"),
    ),
    balance(
        "changes_are_carried",
        "ledger_outputs",
        "What the day created and consumed is in ledger_changes.",
        expected=_changes,
        found=_changes_carried,
    ),
    *(
        balance(
            f"{table}_go_on",
            table,
            "What is unspent was unspent the day before, or was created, and was not consumed.",
            expected=_continued(table, key, measures),
            found=_unspent(table, key, measures),
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
        _broken_chapters,
    ),
    balance(
        "ledger_adds_up",
        "ledger_totals",
        "The ledger's size is that of its outputs.",
        expected=lambda scope: per_day(
            scope("ledger_outputs").where("kind <> 'treasury'"),
            outputs="sum(unspent_count)",
            amount="sum(unspent_amount)",
        ),
        found=lambda scope: per_row(scope("ledger_totals"), outputs="outputs", amount="amount"),
    ),
    balance(
        "distribution_adds_up",
        "token_distribution",
        "Balances add up to the ledger's amount.",
        expected=lambda scope: per_row(scope("ledger_totals"), amount="amount", holders="holders"),
        found=lambda scope: per_day(
            scope("token_distribution"), amount="sum(amount)", holders="sum(addresses)"
        ),
    ),
    balance(
        "checkpoints_are_whole",
        "address_balances",
        "At a checkpoint every balance is there.",
        expected=lambda scope: per_row(
            scope("ledger_totals").where("checkpoint = date"), amount="amount", holders="holders"
        ),
        found=_held_by_addresses,
    ),
    violations(
        "richest_in_order",
        "richest_addresses",
        "Ranks run from 1, and nobody is richer than an earlier rank.",
        _misranked,
    ),
)
