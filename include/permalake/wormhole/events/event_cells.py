"""Lake tables → rows of the Bigtable event table v2, as a query.

Rows of a store frame: ``row_key`` (text); a column ``FAMILY:QUALIFIER`` for each cell that a row has once,
null where it has none, all with the time ``micros``; and, for cells whose qualifiers or times are data,
``cells``, an array of ``(family, qualifier, value, micros)``. Values are UTF-8 text, raw bytes for
``Payload`` and ``SignedVAA``; the time of a cell is the VAA's.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from permalake.pipeline.day_queries import DayQueries
from permalake.wormhole.contracts import WORMHOLE_TABLES
from permalake.wormhole.events.families import FAMILIES, Family

EVENTS = "events"


def spelled(kind: str, value: str) -> str:
    """Return SQL for the text, or the raw bytes, of a cell, from a value of a contract type, in UTC."""
    if kind == "binary":
        return value
    text = f"CAST({value} AS STRING)"
    return f"replace(substring({text}, 1, 19), ' ', 'T') || 'Z'" if kind == "timestamptz" else text


def _query() -> str:
    cells = [
        f"{spelled(family.table.column(column).type, f'{family.name}.{column}')} AS {family.name}_{qualifier}"
        for family in FAMILIES
        for qualifier, column in family.cells.items()
    ]
    first, *others = FAMILIES
    columns = [f"{first.name}.row_key", f"epoch_us({first.name}.timestamp) AS micros", *cells]
    joins = [
        f"LEFT JOIN {other.table.name} AS {other.name} ON {other.name}.row_key = {first.name}.row_key"
        for other in others
    ]
    return f"SELECT {', '.join(columns)} FROM {first.table.name} AS {first.name} {' '.join(joins)}"


QUERIES = DayQueries({EVENTS: _query()}, WORMHOLE_TABLES)
"""The query of the v2 rows, one per published VAA."""
COLUMNS = (
    "row_key",
    "micros",
    *(f"{family.name}:{qualifier}" for family in FAMILIES for qualifier in family.cells),
)
"""Columns of its rows; in the query itself an underscore stands for the colon."""


def vaa_time() -> Column:
    """Return the time of an event's cells, from the columns of ``message_publication``."""
    return F.unix_micros("timestamp").alias("micros")


def cells_of(family: Family) -> list[Column]:
    """Return the family's cells, from the columns of its lake table."""
    return [
        F.expr(spelled(family.table.column(column).type, column)).alias(f"{family.name}:{qualifier}")
        for qualifier, column in family.cells.items()
    ]
