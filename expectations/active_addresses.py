"""Expectations of ``active_addresses`` beyond its contract."""

from permalake.audit.suite import rule, suite

SUITE = suite(
    "active_addresses",
    rule(
        "period_begins",
        "start_date = CASE period WHEN 'day' THEN date ELSE to_date(date_trunc(period, date)) END",
        "start_date is the first date of the period that date lies in.",
    ),
    rule(
        "days_within_period",
        "days <= datediff(date, start_date) + 1",
        "No more days count than have passed.",
    ),
)
