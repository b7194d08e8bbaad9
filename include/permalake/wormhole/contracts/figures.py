"""Figures and charts of Wormhole's pages, beside the flows."""

from __future__ import annotations

from permalake.contracts.figures import DailyChart, HeadlineFigure, OpenRequests
from permalake.wormhole.contracts.analyst_views import chain_in_words
from permalake.wormhole.contracts.value_reasons import MEANING

_USD = "sum(CAST(notional_usd AS DOUBLE))"
FIGURES = (
    HeadlineFigure("Messages", "messages_daily", "sum(verified)"),
    HeadlineFigure("Transfers", "notional_transferred_daily", "sum(transfers)"),
    HeadlineFigure("USD moved", "token_transfer_details", _USD, "usd", "count(notional_usd)"),
)
VALUE_LOCKED = DailyChart(
    "Value locked at the day's end",
    "tvl_daily",
    (("USD", _USD),),
    "usd",
    note="Of transfers since the lake's first day: below zero, more came back than the lake saw leaving.",
)
CHARTS = (
    DailyChart(
        "Messages",
        "messages_daily",
        (
            ("verified", "CAST(sum(verified) AS DOUBLE)"),
            ("quarantined", "CAST(sum(quarantined) AS DOUBLE)"),
        ),
        parts=True,
    ),
    DailyChart("USD moved", "notional_transferred_daily", (("USD", _USD),), "usd"),
    VALUE_LOCKED,
    DailyChart("Receivers", "addresses_daily", (("receivers", "CAST(sum(addresses) AS DOUBLE)"),)),
)
_ROWS = "count(*) AS requests, min(date) AS first, max(date) AS last"
_MOST = "GROUP BY 1, 2 ORDER BY requests DESC, what LIMIT 50"
_REASONS = " ".join(f"WHEN '{name}' THEN '{text}'" for name, text in MEANING.items())
_CHAIN = chain_in_words("split_part(row_key, ':', 1)")
OPEN_REQUESTS = (
    OpenRequests(
        "Transfers without a value",
        "A run with --only enrich asks the provider again for its days.",
        "token_transfer_details",
        "SELECT coalesce(origin_symbol, '?') || ' ' || coalesce(origin_token_address, '') AS what, "  # noqa: S608
        f"CASE reason {_REASONS} ELSE 'built before reasons were stored' END AS reason, {_ROWS} "
        f"FROM token_transfer_details WHERE notional_usd IS NULL {_MOST}",
    ),
    OpenRequests(
        "Transfers without a sender or receiver",
        "They are asked of the chains once [chains.ID] has an rpc_url.",
        "chain_details",
        f"SELECT what, reason, {_ROWS} FROM ("  # noqa: S608
        f"SELECT {_CHAIN} AS what, 'sender not known' AS reason, date FROM chain_details "
        "WHERE sender_address IS NULL UNION ALL "
        f"SELECT {_CHAIN} AS what, 'receiver not known' AS reason, date FROM chain_details "
        f"WHERE receiver_address IS NULL) {_MOST}",
    ),
    OpenRequests(
        "Transfers in flight",
        "A run with --only enrich asks the source and the target chains again for those of its days.",
        "redemptions",
        f"SELECT 'to ' || {chain_in_words('target_chain')} AS what, 'not redeemed when asked' AS reason, "  # noqa: S608
        f"{_ROWS} FROM (SELECT date, row_key, target_chain FROM redemptions GROUP BY ALL "
        f"HAVING NOT bool_or(status = 'completed')) {_MOST}",
    ),
    OpenRequests(
        "Balances of bridges that a node did not tell",
        "A run with --only enrich asks again for those of its days; earlier blocks need an archive node.",
        "token_custody",
        f"SELECT {chain_in_words('origin_chain')} AS what, reason, "  # noqa: S608
        f"{_ROWS} FROM (SELECT date, origin_chain, origin_address, min(reason) AS reason FROM token_custody "
        f"GROUP BY ALL HAVING bool_and(status = 'unknown')) {_MOST}",
    ),
    OpenRequests(
        "Questions that a chain could not answer",
        "A run with --only enrich asks again for those of its days.",
        "chain_answers",
        f"SELECT {chain_in_words('chain')} || ', ' || question AS what, reason, "  # noqa: S608
        f"{_ROWS} FROM chain_answers WHERE told = 0 {_MOST}",
    ),
)
