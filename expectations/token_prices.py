"""Expectations of ``token_prices`` beyond its contract."""

from permalake.audit.suite import rule, suite

SUITE = suite(
    "token_prices",
    rule("price_not_negative", "price_usd >= 0", "No price is negative."),
    rule("date_of_quote", "date = to_date(quote_time)", "date is that of the quote."),
)
