"""Laws of what a day changed in the ledger: it is in the output tables, and belongs to addresses."""

from __future__ import annotations

from pyspark.sql import DataFrame

from permalake.audit.laws import balance, entries, per_day, per_row, union
from permalake.audit.scope import Scope
from permalake.iota.laws.tangle_sides import KINDS


def of_kind(frame: DataFrame, kind: str, **values: str) -> DataFrame:
    """Return entries of several columns of a frame, at ``kind`` and the column's name."""
    pairs = ", ".join(f"'{name}', cast({value} AS decimal(38,8))" for name, value in values.items())
    stacked = frame.selectExpr("date", f"{kind} AS kind", f"stack({len(values)}, {pairs}) AS (name, value)")
    return entries(stacked, "concat(kind, name)", "value")


def _moved(scope: Scope) -> DataFrame:
    """Return number, amount and bytes of outputs created, number and amount of outputs consumed, by kind."""
    sides = [
        of_kind(
            scope(f"{kind}_outputs"), f"'{kind} created '", count="1", amount="amount", bytes="length(data)"
        )
        for kind in (*KINDS, "treasury")
    ]
    consumed = of_kind(scope("consumed_outputs"), "concat(kind, ' consumed ')", count="1", amount="amount")
    return union([*sides, consumed])


def _stated(scope: Scope) -> DataFrame:
    """Return the same as ledger_changes has it; the bytes of consumed outputs are nowhere else."""
    rows = scope("ledger_changes")
    return union(
        [
            of_kind(
                rows.where(f"side = '{side}'"), f"concat(kind, ' {side} ')", **{name: name for name in names}
            )
            for side, names in (("created", ("count", "amount", "bytes")), ("consumed", ("count", "amount")))
        ]
    )


LAWS = (
    balance(
        "outputs_moved",
        "ledger_changes",
        "What the day created and consumed is in the output tables.",
        expected=_moved,
        found=_stated,
    ),
    balance(
        "every_kind_every_day",
        "ledger_changes",
        "Each day with milestones has a row of every kind and side.",
        expected=lambda scope: per_row(scope("date_cache"), rows="12"),
        found=lambda scope: per_day(scope("ledger_changes"), rows="count(*)"),
    ),
    balance(
        "changes_belong_to_addresses",
        "balance_changes",
        "Balances change by what the day created less what it consumed.",
        expected=lambda scope: per_day(
            scope("ledger_changes").where("kind <> 'treasury'"),
            change="sum(CASE side WHEN 'created' THEN amount ELSE -amount END)",
        ),
        found=lambda scope: per_day(scope("balance_changes"), change="sum(change)"),
    ),
    balance(
        "active_addresses_of_the_day",
        "balance_changes",
        "Active addresses are those of daily_analytics.",
        expected=lambda scope: per_row(scope("daily_analytics"), addresses="total_addresses"),
        found=lambda scope: per_day(scope("balance_changes"), addresses="sum(is_active)"),
    ),
)
