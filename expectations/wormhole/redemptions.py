"""Redemptions of transfers on their target chains."""

from permalake.audit.suite import rule, suite

SUITES = (
    suite(
        "redemptions",
        rule(
            "in_flight_tells_nothing",
            "status <> 'in_flight' OR (redeemed_at IS NULL "
            "AND coalesce(target_tx_id, redeemer, fee, receiver_address, token_address) IS NULL)",
            "A transfer in flight has no transaction on the target chain.",
        ),
        rule(
            "chain_tells_whether_completed",
            "source <> 'rpc' OR status IN ('completed', 'in_flight')",
            "A chain tells whether a transfer is redeemed, not what became of tries.",
        ),
    ),
)
