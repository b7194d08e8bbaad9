"""What the laws of running figures compare: the ledger at the ends of days, and what days changed."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from permalake.audit.laws import Frame, Scope, entries, per_day, per_row, union

_KINDS = ("basic", "alias", "foundry", "nft", "legacy", "treasury")


def summed(table: str, *columns: str) -> Frame:
    """Sums of a table's columns, per day."""
    return lambda scope: per_day(scope(table), **{column: f"sum({column})" for column in columns})


def told(table: str, *columns: str) -> Frame:
    """Columns of a table with one row a day."""
    return lambda scope: per_row(scope(table), **{column: column for column in columns})


def active_of_day(scope: Scope) -> DataFrame:
    """Addresses that were active on the day alone."""
    return per_row(scope("active_addresses").where("period = 'day'"), addresses="addresses")


def outputs_moved(scope: Scope) -> DataFrame:
    """Number, amount and bytes of outputs created, number and amount of outputs consumed, by kind."""
    sides = [
        _of_kind(
            scope(f"{kind}_outputs"), f"'{kind} created '", count="1", amount="amount", bytes="length(data)"
        )
        for kind in _KINDS
    ]
    consumed = _of_kind(scope("consumed_outputs"), "concat(kind, ' consumed ')", count="1", amount="amount")
    return union([*sides, consumed])


def outputs_told(scope: Scope) -> DataFrame:
    """The same as ledger_outputs has it."""
    names = [f"created_{one}" for one in ("count", "amount", "bytes")]
    names += [f"consumed_{one}" for one in ("count", "amount")]
    values = {name.replace("_", " "): name for name in names}
    return _of_kind(scope("ledger_outputs"), "concat(kind, ' ')", **values)


def _of_kind(frame: DataFrame, kind: str, **values: str) -> DataFrame:
    pairs = ", ".join(f"'{name}', cast({value} AS decimal(38,8))" for name, value in values.items())
    stacked = frame.selectExpr("date", f"{kind} AS kind", f"stack({len(values)}, {pairs}) AS (name, value)")
    return entries(stacked, "concat(kind, name)", "value")


def went_on(table: str, key: str, measures: Sequence[str]) -> Frame:
    """Unspent outputs at the end of the day before in the same chapter, and what the day changed."""

    def side(scope: Scope) -> DataFrame:
        frame = _after_the_day_before(scope, table, key, measures)
        values = {
            f"unspent {one}": f"coalesce(before_{one}, 0) + created_{one} - consumed_{one}"
            for one in measures
        }
        return _of_kind(frame, f"concat({key}, ' ')", **values)

    return side


def stands(table: str, key: str, measures: Sequence[str]) -> Frame:
    """Unspent outputs at the day's end."""

    def side(scope: Scope) -> DataFrame:
        frame = _after_the_day_before(scope, table, key, measures)
        return _of_kind(
            frame, f"concat({key}, ' ')", **{f"unspent {one}": f"unspent_{one}" for one in measures}
        )

    return side


def _after_the_day_before(scope: Scope, table: str, key: str, measures: Sequence[str]) -> DataFrame:
    """Rows with ``before_…`` of the day before, where it is of the same chapter. A chapter's first day begins
    at zero; rows whose day before is not known are left out."""
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


def broken_chapters(scope: Scope) -> DataFrame:
    """Days that go on although the day before does not end where they start."""
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


def whole_state(scope: Scope) -> DataFrame:
    """Balances of checkpoints: their sum, and how many there are."""
    days = scope("ledger_totals").where("checkpoint = date").select("date")
    balances = scope("address_balances").join(F.broadcast(days), "date")
    return per_day(balances, amount="sum(balance)", holders="count_if(balance <> 0)")


def held_at_checkpoints(scope: Scope) -> DataFrame:
    """The same of ledger_totals."""
    return per_row(scope("ledger_totals").where("checkpoint = date"), amount="amount", holders="holders")


def misranked(scope: Scope) -> DataFrame:
    """Ranks that are out of order, or leave a number out."""
    by_rank = Window.partitionBy("date").orderBy("rank")
    rows = scope("richest_addresses").select(
        *("date", "rank", "balance"),
        F.row_number().over(by_rank).alias("place_in_row"),
        F.lag("balance").over(by_rank).alias("richer"),
    )
    return rows.where("rank <> place_in_row OR balance > richer").selectExpr(
        "date", "concat('rank ', rank) AS place", "concat('at most ', richer) AS expected", "balance AS found"
    )
