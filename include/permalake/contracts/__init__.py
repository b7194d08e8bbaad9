"""Table contracts: what a table is. The tables themselves are declared by the domains."""

from permalake.contracts.quarantine import QUARANTINE
from permalake.contracts.schema import Column, Table

__all__ = ["QUARANTINE", "Column", "Table"]
