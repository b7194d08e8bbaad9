"""Views of the Wormhole tables."""

from __future__ import annotations

from permalake.contracts.calendar import calendars
from permalake.contracts.live_views import with_live
from permalake.contracts.schema import DATE, Column
from permalake.contracts.views import LakeView
from permalake.wormhole.contracts import (
    WORMHOLE_TABLES,
    analyst_views,
    custody_views,
    redemption_views,
    scorecard_views,
)
from permalake.wormhole.contracts.columns import NOTIONAL_SUM, SUMMED, TOTAL

_ALL = "Null in a column that says where or what stands for all of them together."


def _all(name: str, doc: str) -> Column:
    return Column(name, "int", f"{doc} (Wormhole chain id); null: all.", required=False)


_TOKEN = (
    _all("origin_chain", "The token's own chain"),
    Column("origin_address", "string", "The token on its own chain (hex); null: all.", required=False),
)
NOTIONAL_TOTALS = LakeView(
    "notional_transferred_totals",
    "wormhole",
    "Transfers and their value per day, rolled up by every choice of sending and receiving chain and token.",
    (
        DATE,
        _all("emitter_chain", "Chain that sent"),
        _all("target_chain", "Chain that received"),
        *_TOKEN,
        Column("transfers", "long", "Number of transfers."),
        NOTIONAL_SUM,
    ),
    ("notional_transferred_daily",),
    f"SELECT date, emitter_chain, target_chain, origin_chain, origin_address, transfers, {TOTAL} FROM ("  # noqa: S608
    f"SELECT date, emitter_chain, target_chain, origin_chain, origin_address, "
    f"CAST(sum(transfers) AS BIGINT) AS transfers, {SUMMED} "
    "FROM {network}.notional_transferred_daily WHERE date <= CAST(as_of AS DATE) "
    "GROUP BY date, CUBE (emitter_chain, target_chain, (origin_chain, origin_address)))",
    note=f"{_ALL} Choose rows by IS NULL and IS NOT NULL: all rows together count each transfer eight times.",
)
MESSAGES_TOTALS = LakeView(
    "messages_totals",
    "wormhole",
    "VAAs per day, by emitter chain and of all chains.",
    (
        DATE,
        _all("emitter_chain", "Chain of the emitters"),
        *(Column(name, "long", f"VAAs {name}.") for name in ("messages", "verified", "quarantined")),
    ),
    ("messages_daily",),
    "SELECT date, emitter_chain, CAST(sum(messages) AS BIGINT) AS messages, "
    "CAST(sum(verified) AS BIGINT) AS verified, CAST(sum(quarantined) AS BIGINT) AS quarantined "
    "FROM {network}.messages_daily WHERE date <= CAST(as_of AS DATE) GROUP BY date, ROLLUP (emitter_chain)",
    note=_ALL,
)
TVL_TOTALS = LakeView(
    "tvl_totals",
    "wormhole",
    "Value locked in the bridges at each day's end, by the tokens' own chain and of all chains.",
    (
        DATE,
        _all("origin_chain", "The tokens' own chain"),
        Column("tokens", "long", "Tokens with a balance that is known."),
        Column("valued", "long", "Those of them that have a value in USD: the sum covers no others."),
        NOTIONAL_SUM,
    ),
    ("tvl_daily",),
    f"SELECT date, origin_chain, tokens, valued, {TOTAL} FROM ("  # noqa: S608
    f"SELECT date, origin_chain, count(amount) AS tokens, count(notional_usd) AS valued, {SUMMED} "
    "FROM {network}.tvl_daily WHERE date <= CAST(as_of AS DATE) GROUP BY date, ROLLUP (origin_chain))",
    note=_ALL,
)
LIVE_VIEW_TABLES = (
    *("message_publication", "quorum_state", "observations"),
    *("token_transfer_payload", "asset_meta_payload", "nft_transfer_payload"),
    *("application_messages", "application_transfers", "relayer_deliveries", "governance_actions"),
    "token_transfer_details",
)
"""Tables that the live head has too: what follows from VAAs and observations, and values by stored quotes."""
VIEWS = (
    *(NOTIONAL_TOTALS, MESSAGES_TOTALS, TVL_TOTALS),
    *custody_views.VIEWS,
    *scorecard_views.VIEWS,
    *redemption_views.VIEWS,
    *calendars("messages_daily"),
    *analyst_views.VIEWS,
    *(with_live(WORMHOLE_TABLES[name], "wormhole") for name in LIVE_VIEW_TABLES),
)
