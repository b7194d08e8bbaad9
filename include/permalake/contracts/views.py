"""Views of the lake: joins of tables that ``permalake query`` offers beside them, never stored."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from permalake.contracts.schema import Column

_LAST_DAY = f"DATE '{date.max}'"


@dataclass(frozen=True)
class LakeView:
    """A view of the lake, also a table macro of the same name whose one argument is a day.

    ``sql``: DuckDB, with the day as ``as_of`` and the network's schema as ``{network}``; ``tables`` are those
    it reads, all of the same network. ``key``: columns that, with ``date``, identify a row; None: those of
    type ``int`` or ``string``. ``runs_on``: a day's rows depend on earlier days, so its tables are read
    whole, whatever dates are asked for. ``live``: the tables that it also reads of the network's head, whose
    schema is ``{live}``; they are empty where nobody follows the network.
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
    live: tuple[str, ...] = ()

    def body(self, network: str = "", live: str | None = None, as_of: str = _LAST_DAY) -> str:
        """Return the SELECT.

        Args:
            network: The quoted schema of its tables; without it they are named alone.
            live: The quoted schema of the network's head; None: it has no head.
            as_of: The day as SQL, or the name of a macro's argument.
        """
        sql = re.sub(r"\bas_of\b", as_of, self.sql)
        for table in self.live:
            empty = f"(SELECT * FROM {{network}}.{table} WHERE false)"  # noqa: S608
            sql = sql.replace(f"{{live}}.{table}", empty if live is None else f"{live}.{table}")
        return sql.replace("{network}", network) if network else sql.replace("{network}.", "")
