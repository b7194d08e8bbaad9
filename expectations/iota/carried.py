"""Carried tables: the ledger and its owners at the end of a day."""

from expectations.common import not_negative_when_whole
from permalake.audit.suite import rule, suite


def _power_of_ten(exponent: str) -> str:
    return f"CAST('1' || repeat('0', {exponent}) AS decimal(20,0))"


SUITES = (
    suite(
        "active_addresses",
        rule(
            "period_begins",
            # DuckDB stops at a period that it does not know.
            "start_date = CASE period WHEN 'day' THEN date "
            "WHEN 'week' THEN CAST(date_trunc('week', date) AS DATE) "
            "WHEN 'month' THEN CAST(date_trunc('month', date) AS DATE) "
            "WHEN 'year' THEN CAST(date_trunc('year', date) AS DATE) END",
            "start_date is the first date of the period that date lies in.",
        ),
        rule(
            "days_within_period",
            "days <= date_diff('day', start_date, date) + 1",
            "No more days count than have passed.",
        ),
    ),
    suite("ledger_outputs", not_negative_when_whole("unspent_count", "unspent_amount", "unspent_bytes")),
    suite(
        "unlock_conditions",
        rule(
            "only_deposits_are_returned",
            "condition = 'storage_deposit_return' OR (created_return_amount = 0 "
            "AND consumed_return_amount = 0 AND unspent_return_amount = 0)",
            "Only storage deposit return conditions return something.",
        ),
        rule(
            "returns_within_amounts",
            "created_return_amount <= created_amount AND consumed_return_amount <= consumed_amount",
            "An output returns no more than it holds.",
        ),
        not_negative_when_whole("unspent_count", "unspent_amount", "unspent_return_amount"),
    ),
    suite(
        "ledger_totals",
        rule("keys_weigh_34_bytes", "key_bytes = 34 * outputs", "An unspent output weighs 34 bytes as key."),
        rule(
            "sizes_together",
            "(key_bytes IS NULL) = (data_bytes IS NULL) "
            "AND (storage_deposit IS NULL OR data_bytes IS NOT NULL)",
            "Key and data bytes are known together, and a deposit only with them.",
        ),
        rule(
            "checkpoint_in_month",
            "checkpoint <= date AND date_trunc('month', checkpoint) = date_trunc('month', date)",
            "The checkpoint is of the same month.",
        ),
    ),
    suite(
        "address_balances",
        rule(
            "known_balance_is_not_negative",
            "since_milestone IS NOT NULL OR balance >= 0",
            "No balance is below zero where the whole ledger is known.",
        ),
        rule("active_before_end", "active_on <= date", "active_on is not after date."),
    ),
    suite(
        "token_distribution",
        rule(
            "amount_within_bucket",
            # The contract bounds buckets: a greater one would overflow here.
            "CASE WHEN bucket < 0 THEN amount < 0 WHEN bucket <= 18 THEN amount >= addresses * "
            f"{_power_of_ten('bucket')} AND amount < addresses * {_power_of_ten('bucket + 1')} END",
            "The sum of balances fits the bucket and the number of addresses.",
        ),
        rule(
            "nobody_below_zero",
            "bucket >= 0 OR since_milestone IS NOT NULL",
            "No address is below zero where the whole ledger is known.",
        ),
    ),
    suite("richest_addresses"),
)
