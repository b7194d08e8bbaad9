"""Laws of the guardians' governor."""

from __future__ import annotations

import pyarrow as pa

from permalake.audit.configuration import Configuration
from permalake.audit.laws import shared, violations
from permalake.wormhole.laws.transfer_sides import ROUTED
from permalake.wormhole.reference import load_reference


def _listed(configuration: Configuration) -> pa.Table:
    """Return the listed tokens: (chain, token_address)."""
    return load_reference(configuration.reference).token_table().select(["chain", "token_address"])


def _limits(configuration: Configuration) -> pa.Table:
    """Return the limits of chains: (emitter_chain, since, until, daily_limit_usd, big_transaction_usd)."""
    return load_reference(configuration.reference).limit_table()


shared("listed_tokens", _listed)
shared("governor_limits", _limits)
_GOVERNED = f"""
SELECT governed.date AS date, governed.emitter_chain AS emitter_chain,
    CASE WHEN big_transaction_usd > 0 AND notional_usd >= big_transaction_usd THEN 1 ELSE 0 END AS is_big
FROM (
    SELECT * FROM {ROUTED} AS transfers SEMI JOIN listed_tokens AS tokens
        ON transfers.origin_chain = tokens.chain AND transfers.origin_address = tokens.token_address
    WHERE notional_usd IS NOT NULL
) AS governed JOIN governor_limits AS limits
    ON governed.emitter_chain = limits.emitter_chain AND governed.date >= since
    AND (until IS NULL OR governed.date < until)
"""
_USAGE = f"""
SELECT coalesce(told.date, counted.date) AS date,
    'chain ' || coalesce(told.emitter_chain, counted.emitter_chain) AS place,
    coalesce(small, 0) || ' and ' || coalesce(big, 0) || ' big' AS expected,
    coalesce(transfers, 0) || ' and ' || coalesce(big_transfers, 0) || ' big' AS found
FROM governor_usage_daily AS told FULL JOIN (
    SELECT date, emitter_chain, sum(1 - is_big) AS small, sum(is_big) AS big FROM ({_GOVERNED})
    GROUP BY date, emitter_chain
) AS counted ON told.date = counted.date AND told.emitter_chain = counted.emitter_chain
WHERE coalesce(transfers, 0) <> coalesce(small, 0) OR coalesce(big_transfers, 0) <> coalesce(big, 0)
"""
LAWS = (
    violations(
        "governor_counts_each_transfer",
        "governor_usage_daily",
        "Every priced transfer of a listed token from a governed chain counts once, as big or not.",
        _USAGE,
    ),
)
