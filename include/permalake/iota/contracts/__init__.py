"""Contracts of the tables and views of an IOTA network."""

from permalake.contracts import QUARANTINE, Table
from permalake.iota.contracts import ledger, metrics

IOTA_TABLES: dict[str, Table] = {table.name: table for table in (*ledger.TABLES, *metrics.TABLES, QUARANTINE)}
