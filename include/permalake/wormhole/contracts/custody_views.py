"""View of locked value by custody beside locked value by flow."""

from __future__ import annotations

from permalake.contracts.schema import DATE, Column
from permalake.contracts.views import LakeView
from permalake.wormhole.contracts.columns import chain, word

_AMOUNT = "decimal(38,8)"
_BEYOND = "null where it is not known, and beyond this type"


def _sum(name: str, doc: str) -> Column:
    return Column(name, _AMOUNT, f"{doc}; {_BEYOND}.", required=False)


# A balance is told once; of two answers the one that tells it counts.
_TOLD = """
    SELECT date, origin_chain, origin_address, status, block,
        TRY_CAST(amount AS DECIMAL(38,8)) AS custody, TRY_CAST(outstanding AS DECIMAL(38,8)) AS outstanding
    FROM {network}.token_custody WHERE date <= CAST(as_of AS DATE)
    QUALIFY row_number() OVER (PARTITION BY date, origin_chain, origin_address
        ORDER BY status = 'known' DESC, status = 'none' DESC) = 1
"""
_BOTH = f"""
    SELECT held.date AS date, held.origin_chain AS origin_chain, held.origin_address AS origin_address,
        coalesce(status, 'not_asked') AS status, block, TRY_CAST(amount AS DECIMAL(38,8)) AS flow, custody,
        outstanding, notional_usd AS flow_usd
    FROM {{network}}.tvl_daily AS held
    LEFT JOIN ({_TOLD}) AS told ON told.date = held.date AND told.origin_chain = held.origin_chain
        AND told.origin_address = held.origin_address
    WHERE held.date <= CAST(as_of AS DATE)
"""  # noqa: S608
# tvl_daily has no price of its own: its value and amount tell it, unless the amount is 0.
_USD = """
    CASE WHEN custody = flow THEN flow_usd WHEN custody = 0 AND flow_usd IS NOT NULL THEN 0
    WHEN flow <> 0 THEN TRY_CAST(round(
        CAST(custody AS DOUBLE) * (CAST(flow_usd AS DOUBLE) / CAST(flow AS DOUBLE)), 8) AS DECIMAL(38,8)) END
"""

TVL_COMPARED = LakeView(
    "tvl_compared",
    "wormhole",
    "Value locked by custody (balances of the token bridges) beside value locked by flow, with the "
    "difference in two parts.",
    (
        DATE,
        chain("origin_chain", "The token's own chain"),
        word("origin_address", "The token on its own chain"),
        Column(
            "status", "string", "known, none or unknown as in token_custody; not_asked: no answer at all."
        ),
        Column("block", "long", "Block of the balance.", required=False),
        _sum("flow_amount", "Amount locked by flow (tvl_daily)"),
        _sum("custody_amount", "Amount that the bridge held"),
        _sum("outstanding_amount", "Amount that the bridge counts as locked"),
        _sum("difference", "custody_amount - flow_amount"),
        _sum(
            "beside_transfers",
            "custody_amount - outstanding_amount: what moved without a transfer (gifts, rebasing, fees)",
        ),
        _sum(
            "not_in_flow",
            "outstanding_amount - flow_amount: on the way back, of days not published, or not decoded",
        ),
        _sum("flow_usd", "notional_usd of tvl_daily"),
        _sum("custody_usd", "custody_amount at the same price, to 15 digits"),
        _sum("difference_usd", "custody_usd - flow_usd"),
    ),
    ("tvl_daily", "token_custody"),
    "SELECT date, origin_chain, origin_address, status, block, flow AS flow_amount, "  # noqa: S608
    "custody AS custody_amount, outstanding AS outstanding_amount, TRY(custody - flow) AS difference, "
    "TRY(custody - outstanding) AS beside_transfers, TRY(outstanding - flow) AS not_in_flow, flow_usd, "
    "custody_usd, TRY(custody_usd - flow_usd) AS difference_usd "
    f"FROM (SELECT *, {_USD} AS custody_usd FROM ({_BOTH}))",
    note="A token that flows back to 0 has no price here. Only EVM chains with an archive node in "
    "[chains.ID] rpc_url tell custody.",
    key=("origin_chain", "origin_address"),
)
VIEWS = (TVL_COMPARED,)
