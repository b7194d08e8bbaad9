"""Functions that queries may call beside DuckDB's own: columns in, a column out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class SqlFunction:
    """A function of the values of one row, on whole Arrow arrays.

    ``takes`` and ``gives`` are types as columns of contracts have them. ``work`` can be sent to a task.
    """

    name: str
    work: Callable[..., pa.Array]
    takes: tuple[str, ...]
    gives: str
