"""Contract of the observations that no VAA confirms yet; only the live head has them."""

from __future__ import annotations

from permalake.contracts.schema import Column, Table
from permalake.wormhole.contracts.columns import text

WAITING_OBSERVATIONS = Table(
    "waiting_observations",
    "wormhole",
    "Observations in the live head that wait for a VAA, or for another copy of it; none is confirmed.",
    (
        Column("row_key", "string", "The message that they name (v2 key)."),
        text("guardian", "The guardian that they name (hex)."),
        Column("signature", "binary", "Their signature.", required=False),
        Column("observed_at", "timestamptz", "When they were indexed.", required=False),
        Column("source", "string", "Source that they came from."),
        text("origin", "Where exactly."),
        Column("raw", "binary", "The document, as JSON."),
    ),
    key=("row_key", "raw"),
    sort=("row_key", "observed_at"),
    commit="head",
    date_doc="UTC date on which they were indexed.",
)
HEAD_TABLES = {WAITING_OBSERVATIONS.name: WAITING_OBSERVATIONS}
