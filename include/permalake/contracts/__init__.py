"""Table contracts: the single source of every schema."""

from __future__ import annotations

from permalake.contracts import iota, iota_metrics, wormhole
from permalake.contracts.quarantine import QUARANTINE
from permalake.contracts.schema import Column, Table

IOTA_TABLES: dict[str, Table] = {
    table.name: table for table in (*iota.TABLES, *iota_metrics.TABLES, QUARANTINE)
}
WORMHOLE_TABLES: dict[str, Table] = {table.name: table for table in (*wormhole.TABLES, QUARANTINE)}

__all__ = ["IOTA_TABLES", "QUARANTINE", "WORMHOLE_TABLES", "Column", "Table", "tables_of"]


def tables_of(network: str) -> dict[str, Table]:
    """Contracts of a lake namespace, by table name."""
    return WORMHOLE_TABLES if network == wormhole.NAMESPACE else IOTA_TABLES
