"""A lake with a year of daily figures of both products, as large as the pages of a grown lake have to show.

Two IOTA networks and Wormhole with 30 chains, each pair of which moves something on a fifth of the days. Only
the tables that pages of whole networks read have rows; nothing is audited.
"""

from __future__ import annotations

import random
import sys
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from permalake.config import Settings
from permalake.contracts import Column, Table
from permalake.domains import domain_of
from permalake.paths import ROOT

sys.path.append(str(ROOT / "tests"))
from support import lakes

Row = dict[str, Any]
FIRST, DAYS = date(2023, 1, 1), 365
LAST = FIRST + timedelta(DAYS - 1)
CHAINS = tuple(range(1, 31))
NETWORKS = {"shimmer": ("stardust", "smr"), "iota": ("chrysalis", "iota")}
_KEYS: dict[str, tuple[Row, ...]] = {
    "ledger_outputs": tuple({"kind": kind} for kind in ("basic", "alias", "foundry", "nft", "legacy")),
    "messages_daily": tuple({"emitter_chain": chain} for chain in CHAINS),
    "addresses_daily": tuple({"target_chain": chain} for chain in CHAINS),
    "tvl_daily": tuple({"origin_chain": chain, "origin_address": f"{chain:064x}"} for chain in CHAINS),
    "notional_transferred_daily": tuple(
        {"emitter_chain": a, "target_chain": b, "origin_chain": a, "origin_address": f"{a:064x}"}
        for a in CHAINS
        for b in CHAINS
        if a != b
    ),
}
_SHARE = {"notional_transferred_daily": 0.2}
"""Share of the keys that a day has, where it is not all."""


def settings_of(folder: Path) -> Settings:
    """Return the configuration of the lake."""
    networks = {
        name: {"protocol": protocol, "bech32_hrp": hrp, "path": str(folder)}
        for name, (protocol, hrp) in NETWORKS.items()
    }
    return Settings(
        lake={"warehouse": str(folder / "lake")}, networks=networks, wormhole={"path": str(folder)}
    )  # type: ignore[arg-type]


def write(settings: Settings) -> None:
    """Publish the year, each network in one publication."""
    values = random.Random(7)
    lake = lakes.OpenLake(settings)
    for network in (*NETWORKS, "wormhole"):
        domain = domain_of(network)
        charts = {chart.table for chart in domain.charts} | {figure.table for figure in domain.figures}
        attempt = lake.begin(network, FIRST, LAST, f"a year of {network}")
        for name in sorted(charts | ({"date_cache"} if network in NETWORKS else set())):
            lakes.put(settings, attempt, name, _rows(domain.tables[name], values))
        lake.builds.publish(lakes.pass_audit(attempt))


def _rows(table: Table, values: random.Random) -> list[Row]:
    share = _SHARE.get(table.name, 1.0)
    rows = []
    for at in range(DAYS):
        day = FIRST + timedelta(at)
        for key in _KEYS.get(table.name, ({},)):
            if values.random() < share:
                made = {column.name: _value(column, at, values) for column in table.columns}
                rows.append(made | key | {"date": day})
    return rows


def _value(column: Column, at: int, values: random.Random) -> Any:
    if column.name in ("start_ms", "end_ms"):
        return 1 + at
    match column.type:
        case "int" | "long":
            return values.randrange(1, 1_000_000)
        case "decimal(38,8)":
            return Decimal(values.randrange(10**15)) / 10**8
        case "list<int>":
            return [values.randrange(1000) for _ in range(11)]
        case "string":
            return str(values.randrange(10**9))
    return None
