"""Expectations of ``ledger_totals`` beyond its contract."""

from permalake.audit.suite import rule, suite

SUITE = suite(
    "ledger_totals",
    rule(
        "keys_weigh_34_bytes",
        "key_bytes = 34 * outputs",
        "An unspent output weighs 34 bytes as key.",
    ),
    rule(
        "sizes_together",
        "(key_bytes IS NULL) = (data_bytes IS NULL) AND (storage_deposit IS NULL OR data_bytes IS NOT NULL)",
        "Key and data bytes are known together, and a deposit only with them.",
    ),
    rule(
        "checkpoint_in_month",
        "checkpoint <= date AND date_trunc('month', checkpoint) = date_trunc('month', date)",
        "The checkpoint is of the same month.",
    ),
)
