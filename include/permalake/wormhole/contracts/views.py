"""Views of the Wormhole tables."""

from __future__ import annotations

from permalake.contracts.schema import DATE, Column
from permalake.contracts.views import LakeView
from permalake.wormhole.contracts import redemption_views, scorecard_views

_ALL = "Null in a column that says where or what stands for all of them together."


def _all(name: str, doc: str) -> Column:
    return Column(name, "int", f"{doc} (Wormhole chain id); null: all.", required=False)


_TOKEN = (
    _all("origin_chain", "The token's own chain"),
    Column("origin_address", "string", "The token on its own chain (hex); null: all.", required=False),
)
_NOTIONAL = Column(
    "notional_usd",
    "decimal(38,8)",
    "Sum of notional values; null when nothing has one, and beyond this type.",
    False,
)
# DuckDB has no decimal wider than 38 digits: dollars and their fractions are summed apart.
_LIMBS = "sum(trunc(notional_usd)) AS dollars, sum(notional_usd - trunc(notional_usd)) AS fractions"
_TOTAL = "TRY(CAST(dollars AS DECIMAL(38,8)) + fractions) AS notional_usd"

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
        _NOTIONAL,
    ),
    ("notional_transferred_daily",),
    f"SELECT date, emitter_chain, target_chain, origin_chain, origin_address, transfers, {_TOTAL} FROM ("  # noqa: S608
    f"SELECT date, emitter_chain, target_chain, origin_chain, origin_address, "
    f"CAST(sum(transfers) AS BIGINT) AS transfers, {_LIMBS} "
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
        _NOTIONAL,
    ),
    ("tvl_daily",),
    f"SELECT date, origin_chain, tokens, {_TOTAL} FROM ("  # noqa: S608
    f"SELECT date, origin_chain, count(amount) AS tokens, {_LIMBS} "
    "FROM {network}.tvl_daily WHERE date <= CAST(as_of AS DATE) GROUP BY date, ROLLUP (origin_chain))",
    note=_ALL,
)
VIEWS = (
    *(NOTIONAL_TOTALS, MESSAGES_TOTALS, TVL_TOTALS),
    *scorecard_views.VIEWS,
    *redemption_views.VIEWS,
)
