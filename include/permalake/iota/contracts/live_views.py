"""The tables of IOTA networks that readers see together with the live head."""

from __future__ import annotations

from permalake.contracts.live_views import with_live
from permalake.iota.contracts import ledger

LIVE_VIEW_TABLES = ("milestones", "messages", "parents", "tags", "transactions", "consumed_outputs")
_TABLES = {table.name: table for table in ledger.TABLES}
VIEWS = tuple(with_live(_TABLES[name], "iota") for name in LIVE_VIEW_TABLES)
