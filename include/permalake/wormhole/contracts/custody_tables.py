"""Contract of custody: what the token bridges held of their chain's own tokens at the days' ends."""

from __future__ import annotations

from permalake.contracts.schema import AMOUNT, UINT, Column, Table
from permalake.wormhole.contracts.columns import chain, text, word

BALANCE_KNOWN, NO_BALANCE, BALANCE_UNKNOWN = "known", "none", "unknown"

TOKEN_CUSTODY = Table(
    "token_custody",
    "wormhole",
    "What the token bridge of an EVM chain held of the chain's own tokens at the day's last block, as an "
    "archive node told it. Asked for are the day's tokens of tvl_daily.",
    (
        chain("origin_chain", "The token's own chain, whose bridge holds it"),
        word("origin_address", "The token on its own chain"),
        Column(
            "status",
            "string",
            "known: the token told the balance; none: it tells none at that block, which is final; unknown: "
            "the node did not answer, and is asked again.",
            values=(BALANCE_KNOWN, NO_BALANCE, BALANCE_UNKNOWN),
        ),
        Column("block", "long", "The last block of the day, finalized.", required=False, minimum=0),
        Column(
            "decimals",
            "int",
            "decimals() of the token at that block.",
            required=False,
            minimum=0,
            maximum=255,
        ),
        Column(
            "balance",
            "string",
            "balanceOf(token bridge) at that block, in the token's units.",
            required=False,
            pattern=UINT,
        ),
        Column(
            "amount",
            "string",
            "balance as the bridge sends amounts: cut to at most 8 decimals.",
            required=False,
            pattern=AMOUNT,
        ),
        Column(
            "outstanding",
            "string",
            "outstandingBridged(token) of the bridge at that block: what it locked less what it released.",
            required=False,
            pattern=AMOUNT,
        ),
        text("reason", "Why the balance is not known."),
        Column("asked_at", "timestamptz", "Time of the first such answer."),
    ),
    key=("origin_chain", "origin_address", "status", "date"),
    sort=("origin_chain", "origin_address"),
    first_value=("asked_at",),
    commit="side",
    date_doc="UTC date at whose end the balance was held.",
)

TABLES = (TOKEN_CUSTODY,)
