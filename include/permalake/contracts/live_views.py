"""Views of published days together with the live head: each row once, whatever is published meanwhile."""

from __future__ import annotations

from permalake.contracts.schema import Column, Table
from permalake.contracts.views import LakeView

_PROVISIONAL = Column(
    "provisional", "boolean", "true: of the head, whose day is not built, audited and published yet."
)


def with_live(table: Table, group: str) -> LakeView:
    """Return the view of a table with the rows of the live head."""
    names = ", ".join(table.names)
    return LakeView(
        f"{table.name}_with_live",
        group,
        f"Rows of {table.name}: of published days, and of today so far where the network is followed live.",
        (*table.columns, _PROVISIONAL),
        (table.name,),
        f"SELECT {names}, false AS provisional FROM {{network}}.{table.name} "  # noqa: S608
        "WHERE date <= CAST(as_of AS DATE) UNION ALL "
        f"SELECT {names}, true AS provisional FROM {{live}}.{table.name} WHERE date <= CAST(as_of AS DATE)",
        key=table.key,
        live=(table.name,),
    )
