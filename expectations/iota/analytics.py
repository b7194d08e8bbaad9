"""Figures per milestone and per day that follow from the day alone."""

from expectations.common import PAYLOADS_ARE_STATES, buckets_add_up
from permalake.audit.suite import rule, suite

SUITES = (
    suite(
        "ms_analytics",
        rule(
            "transactions_within_messages",
            "transaction_count <= message_count",
            "A milestone has no more transactions than messages.",
        ),
        rule(
            "tokens_need_transactions",
            "transaction_count > 0 OR transferred_tokens = 0",
            "Without transactions nothing is transferred.",
        ),
    ),
    suite(
        "ms_activity",
        PAYLOADS_ARE_STATES,
        buckets_add_up("input"),
        buckets_add_up("output"),
        rule(
            "bytes_within_bytes",
            "tagged_data_bytes + transaction_bytes + milestone_bytes + treasury_transaction_bytes "
            "<= message_bytes",
            "Bytes by payload are no more than all bytes.",
        ),
    ),
    suite("address_analytics"),
    suite(
        "date_cache",
        rule("start_before_end", "start_ms <= end_ms", "The first milestone is not after the last."),
    ),
    suite(
        "metrics_cache",
        rule(
            "metric_of_variant",
            "(variant = 'index') = (metric = 'used')",
            "Tags are used; addresses send and receive.",
        ),
        rule("metric_value_null", "metric_value IS NULL", "metric_value is always null."),
    ),
    suite(
        "daily_activity",
        PAYLOADS_ARE_STATES,
        buckets_add_up("input"),
        buckets_add_up("output"),
        rule(
            "largest_within_all",
            "max_milestone_bytes <= message_bytes AND message_bytes <= max_milestone_bytes * milestones",
            "The largest milestone is within the day's bytes, and no milestone is larger.",
        ),
        rule(
            "moved_within_booked", "moved_tokens <= booked_tokens", "moved_tokens is at most booked_tokens."
        ),
    ),
    suite(
        "daily_analytics",
        rule("year_of_date", "year = year(date)", "year is the year of date."),
        rule(
            "total_within_bounds",
            "total_addresses BETWEEN greatest(send_addresses, recv_addresses) "
            "AND send_addresses + recv_addresses",
            "The total lies between the larger of both counts and their sum.",
        ),
    ),
    suite(
        "daily_extended",
        rule("average_within_most", "avg_outputs <= max_outputs", "The average is at most the maximum."),
        rule(
            "average_of_transactions",
            "(avg_outputs IS NULL) = (included_transaction_count = 0)",
            "There is an average where there are transactions.",
        ),
    ),
    suite(
        "hourly_activity",
        rule(
            "only_transactions_move",
            "payload = 'transaction' OR (included_transactions = 0 AND conflicting_transactions = 0 "
            "AND transferred_tokens = 0 AND moved_tokens = 0)",
            "Only messages with a transaction move tokens.",
        ),
        rule(
            "transactions_have_states",
            "payload <> 'transaction' OR included_transactions + conflicting_transactions = messages",
            "Every transaction is included or conflicts.",
        ),
        rule(
            "moved_within_transferred",
            "moved_tokens <= transferred_tokens",
            "moved_tokens is at most transferred_tokens.",
        ),
    ),
    suite("conflicts_daily"),
    suite("milestone_intervals"),
    suite("top_addresses"),
    suite("top_tags", rule("text_of_tag", "hex(text) = upper(tag)", "text is the tag's text.")),
    suite(
        "tag_families",
        rule(
            "within_messages",
            "tags <= messages AND included_transactions <= messages",
            "Every tag and every transaction has a message.",
        ),
        rule(
            "tokens_of_tags_need_transactions",
            "included_transactions > 0 OR transferred_tokens = 0",
            "Without transactions nothing is transferred.",
        ),
    ),
)
