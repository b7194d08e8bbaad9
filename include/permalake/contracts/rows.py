"""Rows whose columns a statement or a table's contract decides."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
"""A row of a table or of a query: values by column."""
