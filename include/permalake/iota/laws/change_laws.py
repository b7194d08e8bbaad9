"""Laws of what a day changed in the ledger: it is in the output tables, and belongs to addresses."""

from __future__ import annotations

from permalake.audit.laws import balance, per_day, per_row, union, unpivoted
from permalake.iota.laws.tangle_sides import KINDS


def _moved() -> str:
    """Return a side of number, amount and bytes of outputs created, number and amount consumed, by kind."""
    created = {"count": "1", "amount": "amount", "bytes": "octet_length(data)"}
    sides = [
        unpivoted(f"{kind}_outputs", f"'{kind} created ' || name", created) for kind in (*KINDS, "treasury")
    ]
    consumed = {"count": "1", "amount": "amount"}
    return union([*sides, unpivoted("consumed_outputs", "kind || ' consumed ' || name", consumed)])


def _stated() -> str:
    """Return the same as ledger_changes has it; the bytes of consumed outputs are nowhere else."""
    facts = (("created", ("count", "amount", "bytes")), ("consumed", ("count", "amount")))
    return union(
        unpivoted(
            f"SELECT * FROM ledger_changes WHERE side = '{side}'",
            f"kind || ' {side} ' || name",
            {name: name for name in names},
        )
        for side, names in facts
    )


LAWS = (
    balance(
        "outputs_moved",
        "ledger_changes",
        "What the day created and consumed is in the output tables.",
        expected=_moved(),
        actual=_stated(),
    ),
    balance(
        "every_kind_every_day",
        "ledger_changes",
        "Each day with milestones has a row of every kind and side.",
        expected=per_row("date_cache", rows="12"),
        actual=per_day("ledger_changes", rows="count(*)"),
    ),
    balance(
        "changes_belong_to_addresses",
        "balance_changes",
        "Balances change by what the day created less what it consumed.",
        expected=per_day(
            "SELECT * FROM ledger_changes WHERE kind <> 'treasury'",
            change="sum(CASE side WHEN 'created' THEN amount ELSE -amount END)",
        ),
        actual=per_day("balance_changes", change="sum(change)"),
    ),
    balance(
        "active_addresses_of_the_day",
        "balance_changes",
        "Active addresses are those of daily_analytics.",
        expected=per_row("daily_analytics", addresses="total_addresses"),
        actual=per_day("balance_changes", addresses="sum(is_active)"),
    ),
)
