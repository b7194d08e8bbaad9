"""Value and chain details of token transfers, the quotes and answers behind them, and their daily sums."""

from expectations.common import NOTIONAL_NEEDS_PRICE, PRICE_IS_WHOLE, REASON_WITHOUT_VALUE, VALUE_NEEDS_AMOUNT
from permalake.audit.suite import WARNING, rule, suite

SUITES = (
    suite(
        "token_transfer_details",
        PRICE_IS_WHOLE,
        rule(
            "check_is_whole",
            "(check_price_usd IS NULL) = (check_price_timestamp IS NULL) "
            "AND (check_price_usd IS NULL) = (check_price_source IS NULL) "
            "AND (check_price_usd IS NULL OR coalesce(token_price_usd, unused_price_usd) IS NOT NULL)",
            "A cross-check comes with its time and source, beside a quote.",
        ),
        rule(
            "unused_price_has_reason",
            "unused_price_usd IS NULL "
            "OR (token_price_usd IS NULL AND reason IN ('low_confidence', 'outlier'))",
            "A quote that does not count has a reason.",
        ),
        REASON_WITHOUT_VALUE,
        rule(
            "stand_in_is_whole",
            "(stand_in IS NULL) = (stand_in_price_usd IS NULL) "
            "AND (stand_in_timestamp IS NULL) = (stand_in IS NULL OR stand_in = 'usd') "
            "AND (stand_in_notional_usd IS NULL OR stand_in_price_usd IS NOT NULL)",
            "A stand-in has a price, and a time unless it is a dollar.",
        ),
        NOTIONAL_NEEDS_PRICE,
    ),
    suite(
        "chain_details",
        rule(
            "token_name_needs_token",
            "resulting_token_address IS NOT NULL "
            "OR coalesce(resulting_token_symbol, resulting_token_name) IS NULL",
            "A resulting token with a name has an address.",
            WARNING,
        ),
    ),
    suite(
        "token_prices",
        rule("date_of_quote", "date = CAST(quote_time AS DATE)", "date is the UTC date of quote_time."),
        rule(
            "correction_is_whole",
            "(former_price_usd IS NULL) = (corrected_at IS NULL)",
            "A correction has its time and the former price.",
        ),
    ),
    suite(
        "chain_answers",
        rule("answer_has_address", "told = 0 OR address IS NOT NULL", "An answer has an address."),
        rule("reason_where_none", "(told = 0) = (reason IS NOT NULL)", "A missing answer has a reason."),
    ),
    suite("notional_transferred_daily", VALUE_NEEDS_AMOUNT),
    suite("addresses_daily"),
    suite(
        "governor_usage_daily",
        rule(
            "big_transfers_are_big",
            "big_notional_usd IS NULL "
            "OR big_notional_usd >= big_transfers * coalesce(big_transaction_usd, 0)",
            "Big transfers are worth at least their number times the value from which one is big.",
        ),
    ),
)
