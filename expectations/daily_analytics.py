"""Expectations of ``daily_analytics`` beyond its contract."""

from permalake.audit.suite import rule, suite

SUITE = suite(
    "daily_analytics",
    rule("year_of_date", "year = year(date)", "year is the year of date."),
    rule(
        "total_within_bounds",
        "total_addresses BETWEEN greatest(send_addresses, recv_addresses) "
        "AND send_addresses + recv_addresses",
        "The total lies between the larger of both counts and their sum.",
    ),
)
