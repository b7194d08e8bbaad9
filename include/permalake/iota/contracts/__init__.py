"""Contracts of the tables and views of an IOTA network."""

from permalake.contracts import QUARANTINE, Table
from permalake.iota.contracts import activity, carried, ledger, ledger_changes, metrics, movements

_DAYS_OWN = (*ledger.TABLES, *movements.TABLES, *metrics.TABLES, *activity.TABLES, *ledger_changes.TABLES)
IOTA_TABLES: dict[str, Table] = {table.name: table for table in (*_DAYS_OWN, *carried.TABLES, QUARANTINE)}
