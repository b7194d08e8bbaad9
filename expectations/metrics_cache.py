"""Expectations of ``metrics_cache`` beyond its contract."""

from permalake.audit.suite import rule, suite

SUITE = suite(
    "metrics_cache",
    rule(
        "metric_of_variant",
        "(variant = 'index') = (metric = 'used')",
        "Tags are used; addresses send and receive.",
    ),
    rule("metric_value_null", "metric_value IS NULL", "metric_value stays null."),
)
