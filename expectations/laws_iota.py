"""Laws of the ledger and of counts, across the tables of an IOTA day."""

from __future__ import annotations

from permalake.audit.laws import balance, covered, per_day, per_row, union, violations
from permalake.iota.laws.root_laws import broken_roots
from permalake.iota.laws.supply_laws import supply_found, supply_known
from permalake.iota.laws.tangle_laws import (
    AT_MILESTONE,
    INCLUDED,
    by,
    created,
    day_counted,
    day_written,
    disordered,
    gaps,
    message_states,
    messages_of,
    metric_values,
    milestones_known,
    milestones_named,
    ranges_known,
    ranges_named,
    side,
    spent,
    states_of,
    treasury_after,
    treasury_before,
    treasury_changed,
    treasury_skipped,
    untimely,
    wrong_ranges,
)

OUTPUT_ID = "concat(transaction_id, lower(lpad(hex(idx % 256), 2, '0') || lpad(hex(idx div 256), 2, '0')))"
INPUT_ID = "lower(hex(substring(data, 2, 34)))"
TRANSACTION = "concat('transaction ', transaction_id)"
ONE_A_DAY = ("date_cache", "daily_analytics", "daily_extended")

MILESTONES = (
    violations("no_gaps", "milestones", "Milestones of a day are contiguous.", gaps),
    violations("time_goes_on", "milestones", "Each milestone is later than the one before.", untimely),
    covered(
        "milestone_messages_exist",
        "milestones",
        "A milestone's message is among the day's messages.",
        things=messages_of("milestones"),
        known=messages_of("messages"),
    ),
    covered(
        "rows_have_milestones",
        "milestones",
        "Every row's milestone exists, on its date and with its time.",
        things=milestones_named,
        known=milestones_known,
    ),
    covered(
        "ranges_agree",
        "ms_analytics",
        "Every row's ms_range_id is that of its milestone.",
        things=ranges_named,
        known=ranges_known,
    ),
    violations(
        "range_of_milestone", "ms_analytics", "ms_range_id is milestone_index div chunk_size.", wrong_ranges
    ),
    balance(
        "analytics_of_milestones",
        "ms_analytics",
        "Every milestone has one row.",
        expected=side("milestones", AT_MILESTONE),
        found=side("ms_analytics", AT_MILESTONE),
    ),
    balance(
        "activity_of_milestones",
        "ms_activity",
        "Every milestone has one row.",
        expected=side("milestones", AT_MILESTONE),
        found=side("ms_activity", AT_MILESTONE),
    ),
)

MESSAGES = (
    violations(
        "white_flag_order",
        "messages",
        "white_flag_index runs from 0 in each milestone, without gap or repetition.",
        disordered,
    ),
    violations(
        "roots_match",
        "messages",
        "Ids in white-flag order lead to the Merkle roots that the milestone was signed with.",
        broken_roots,
    ),
    *(
        covered(
            f"{table}_have_messages",
            table,
            "Each row's message exists, in the same milestone and state.",
            things=states_of(table),
            known=states_of("messages"),
        )
        for table in ("transactions", "tags", "parents")
    ),
    covered(
        "messages_have_parents",
        "parents",
        "Every message has a parent.",
        things=messages_of("messages"),
        known=messages_of("parents"),
    ),
)

LEDGER = (
    balance(
        "outputs_of_transactions",
        "transactions",
        "The outputs of included transactions are the rows of the output tables.",
        expected=side("transactions", OUTPUT_ID, where=f"{INCLUDED} AND variant = 'output'"),
        found=by(created, "output_id"),
    ),
    balance(
        "inputs_of_transactions",
        "consumed_outputs",
        "The inputs of included transactions are the consumed outputs.",
        expected=side("transactions", INPUT_ID, where=f"{INCLUDED} AND variant = 'input'"),
        found=by(spent, "output_id"),
    ),
    balance(
        "supply_is_conserved",
        "consumed_outputs",
        "A transaction creates as much as it consumes.",
        expected=by(spent, TRANSACTION, "amount"),
        found=by(created, TRANSACTION, "amount"),
    ),
    balance(
        "supply_of_milestones",
        "consumed_outputs",
        "A milestone's transactions and receipt create as much as they consume.",
        expected=lambda scope: by(spent, AT_MILESTONE, "amount")(scope).union(treasury_before(scope)),
        found=lambda scope: by(created, AT_MILESTONE, "amount")(scope).union(treasury_after(scope)),
    ),
    balance(
        "treasury_pays_receipts",
        "treasury_outputs",
        "What a receipt takes from the treasury is what it creates and leaves.",
        expected=treasury_before,
        found=treasury_after,
    ),
    violations(
        "treasury_goes_on",
        "treasury_outputs",
        "A treasury is spent with the amount that it was created with.",
        treasury_changed,
    ),
    balance(
        "supply_of_the_ledger",
        "ledger_outputs",
        "What is unspent, the treasury included, adds up to the supply; where history is cut, to no change.",
        expected=supply_known,
        found=supply_found,
    ),
    violations(
        "treasury_in_line",
        "treasury_outputs",
        "Each receipt spends the treasury that the one before it left.",
        treasury_skipped,
    ),
)

COUNTS = (
    balance(
        "messages_add_up",
        "ms_analytics",
        "message_count is the number of messages.",
        expected=side("messages", AT_MILESTONE),
        found=side("ms_analytics", AT_MILESTONE, "message_count"),
    ),
    balance(
        "transactions_add_up",
        "ms_analytics",
        "transaction_count is the number of included transactions.",
        expected=side("messages", AT_MILESTONE, where=INCLUDED),
        found=side("ms_analytics", AT_MILESTONE, "transaction_count"),
    ),
    balance(
        "tokens_add_up",
        "ms_analytics",
        "transferred_tokens is the sum of the created outputs.",
        expected=by(created, AT_MILESTONE, "amount"),
        found=side("ms_analytics", AT_MILESTONE, "transferred_tokens"),
    ),
    balance(
        "states_add_up",
        "ms_activity",
        "Messages by state are as many as in messages.",
        expected=side("messages", f"concat({AT_MILESTONE}, ' state ', inclusion_state)"),
        found=message_states,
    ),
    balance(
        "bytes_add_up",
        "ms_activity",
        "message_bytes is the size of the messages.",
        expected=side("messages", AT_MILESTONE, "length(message)"),
        found=side("ms_activity", AT_MILESTONE, "message_bytes"),
    ),
    balance(
        "sent_adds_up",
        "address_analytics",
        "sent_tokens is the sum of what the address unlocked.",
        expected=by(spent, f"concat(address, ' ', {AT_MILESTONE})", "amount"),
        found=side("address_analytics", f"concat(address, ' ', {AT_MILESTONE})", "sent_tokens"),
    ),
    balance(
        "received_adds_up",
        "address_analytics",
        "recv_tokens is the sum of the created outputs that the address owns.",
        expected=by(created, f"concat(owner, ' ', {AT_MILESTONE})", "amount"),
        found=side("address_analytics", f"concat(address, ' ', {AT_MILESTONE})", "recv_tokens"),
    ),
    balance(
        "first_and_last_milestone",
        "date_cache",
        "start_ms and end_ms are the day's first and last milestone.",
        expected=lambda scope: per_day(
            scope("milestones"), start_ms="min(milestone_index)", end_ms="max(milestone_index)"
        ),
        found=lambda scope: per_row(scope("date_cache"), start_ms="start_ms", end_ms="end_ms"),
    ),
    balance(
        "values_are_those_of_the_day",
        "metrics_cache",
        "Values are the day's distinct addresses, by what they did, and tags.",
        expected=metric_values,
        found=side("metrics_cache", "concat(metric, ' ', value)"),
    ),
    balance(
        "addresses_add_up",
        "daily_analytics",
        "Counts are those of metrics_cache.",
        expected=lambda scope: per_day(
            scope("metrics_cache"),
            total_addresses="count_if(metric = 'sent_or_received')",
            send_addresses="count_if(metric = 'sent')",
            recv_addresses="count_if(metric = 'received')",
        ),
        found=lambda scope: per_row(
            scope("daily_analytics"),
            total_addresses="total_addresses",
            send_addresses="send_addresses",
            recv_addresses="recv_addresses",
        ),
    ),
    balance(
        "day_adds_up",
        "daily_extended",
        "The day's figures follow from the other tables.",
        expected=day_counted,
        found=day_written,
    ),
    balance(
        "one_row_a_day",
        "daily_extended",
        f"Each day with milestones has one row in {', '.join(ONE_A_DAY)}.",
        expected=lambda scope: per_row(
            scope("milestones").select("date").distinct(), **dict.fromkeys(ONE_A_DAY, "1")
        ),
        found=lambda scope: union(side(name, f"'{name}'")(scope) for name in ONE_A_DAY),
    ),
)

LAWS = (*MILESTONES, *MESSAGES, *LEDGER, *COUNTS)
