"""Contracts of the tables and views of an IOTA network."""

from permalake.contracts import QUARANTINE, Table
from permalake.iota.contracts import carried, ledger, ledger_changes, metrics

_ALL = (*ledger.TABLES, *metrics.TABLES, *ledger_changes.TABLES, *carried.TABLES, QUARANTINE)
IOTA_TABLES: dict[str, Table] = {table.name: table for table in _ALL}
