"""What the pages show of Wormhole beside the flows."""

from __future__ import annotations

from permalake.contracts.figures import DailyChart, HeadlineFigure

_USD = "CAST(sum(notional_usd) AS DOUBLE)"
FIGURES = (
    HeadlineFigure("Messages", "messages_daily", "sum(verified)"),
    HeadlineFigure("Transfers", "notional_transferred_daily", "sum(transfers)"),
    HeadlineFigure("USD moved", "notional_transferred_daily", _USD, "usd"),
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
    DailyChart("Value locked at the day's end", "tvl_daily", (("USD", _USD),), "usd"),
    DailyChart("Receivers", "addresses_daily", (("receivers", "CAST(sum(addresses) AS DOUBLE)"),)),
)
