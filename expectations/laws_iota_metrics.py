"""Laws of the daily metrics of an IOTA network: they follow from other tables, and go on from day to day."""

from __future__ import annotations

from permalake.audit.laws import balance, per_day, per_row, union, violations
from permalake.iota.laws.carried_laws import (
    active_of_day,
    broken_chapters,
    held_at_checkpoints,
    misranked,
    outputs_moved,
    outputs_told,
    stands,
    summed,
    told,
    went_on,
    whole_state,
)
from permalake.iota.laws.tangle_laws import side

ADDED_UP = (
    *("confirmed_count", "conflicting_count", "no_transaction_count", "message_bytes", "moved_tokens"),
    *("nft_created_count", "alias_state_changed_count", "foundry_created_count"),
)
ONE_A_DAY = ("daily_activity", "ledger_totals")

LAWS = (
    balance(
        "activity_of_days",
        "daily_activity",
        "The day's figures are those of its milestones.",
        expected=lambda scope: union(
            [
                summed("ms_activity", *ADDED_UP)(scope),
                per_day(scope("ms_activity"), milestone_count="count(*)"),
                per_day(scope("ms_analytics"), booked_tokens="sum(transferred_tokens)"),
            ]
        ),
        found=told("daily_activity", *ADDED_UP, "milestone_count", "booked_tokens"),
    ),
    balance(
        "metrics_of_a_day",
        "ledger_totals",
        f"Each day with milestones has one row in {' and '.join(ONE_A_DAY)}.",
        expected=lambda scope: per_row(
            scope("milestones").select("date").distinct(), **dict.fromkeys(ONE_A_DAY, "1")
        ),
        found=lambda scope: union(side(name, f"'{name}'")(scope) for name in ONE_A_DAY),
    ),
    balance(
        "active_on_the_day",
        "active_addresses",
        "The day's active addresses are those of daily_analytics.",
        expected=lambda scope: per_row(scope("daily_analytics"), addresses="total_addresses"),
        found=active_of_day,
    ),
    balance(
        "outputs_moved",
        "ledger_outputs",
        "What the day created and consumed is in the output tables.",
        expected=outputs_moved,
        found=outputs_told,
    ),
    *(
        balance(
            f"{table}_go_on",
            table,
            "What is unspent was unspent the day before, or was created, and was not consumed.",
            expected=went_on(table, key, measures),
            found=stands(table, key, measures),
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
        broken_chapters,
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
        found=told("ledger_totals", "outputs", "amount"),
    ),
    balance(
        "distribution_adds_up",
        "token_distribution",
        "Balances add up to the ledger's amount.",
        expected=told("ledger_totals", "amount", "holders"),
        found=lambda scope: per_day(
            scope("token_distribution"), amount="sum(amount)", holders="sum(addresses)"
        ),
    ),
    balance(
        "checkpoints_are_whole",
        "address_balances",
        "At a checkpoint every balance is there.",
        expected=held_at_checkpoints,
        found=whole_state,
    ),
    violations(
        "richest_in_order",
        "richest_addresses",
        "Ranks run from 1, and nobody is richer than who stands before.",
        misranked,
    ),
)
