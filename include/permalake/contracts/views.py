"""What a view of the lake is: a join of tables that ``permalake query`` offers beside them, never stored."""

from __future__ import annotations

from dataclasses import dataclass

from permalake.contracts.schema import Column


@dataclass(frozen=True)
class LakeView:
    """A view of the lake, also a table macro of the same name whose one argument is a day.

    ``sql``: DuckDB, with the day as ``as_of`` and the network's schema as ``{network}``; ``tables`` are those
    it reads, all of the same network. ``key``: columns that, with ``date``, identify a row; None: those of
    type ``int`` or ``string``. ``runs_on``: a day's rows depend on earlier days, so its tables are read
    whole, whatever dates are asked for.
    """

    name: str
    group: str
    doc: str
    columns: tuple[Column, ...]
    tables: tuple[str, ...]
    sql: str
    note: str = ""
    key: tuple[str, ...] | None = None
    runs_on: bool = False
