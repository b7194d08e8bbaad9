"""Table contracts: the single source of every schema."""

from __future__ import annotations

from permalake.contracts.quarantine import QUARANTINE
from permalake.contracts.schema import Column, Table
from permalake.iota.contracts import ledger, metrics
from permalake.wormhole.contracts import tables

IOTA_TABLES: dict[str, Table] = {table.name: table for table in (*ledger.TABLES, *metrics.TABLES, QUARANTINE)}
WORMHOLE_TABLES: dict[str, Table] = {table.name: table for table in (*tables.TABLES, QUARANTINE)}

__all__ = ["IOTA_TABLES", "QUARANTINE", "WORMHOLE_TABLES", "Column", "Table", "tables_of"]


def tables_of(network: str) -> dict[str, Table]:
    """Contracts of a lake namespace, by table name."""
    return WORMHOLE_TABLES if network == tables.NAMESPACE else IOTA_TABLES
