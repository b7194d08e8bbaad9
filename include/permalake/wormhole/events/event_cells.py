"""Lake tables → rows of the Bigtable event table v2.

Rows of a store frame: ``row_key`` (text); a column ``FAMILY:QUALIFIER`` for each cell that a row has once,
null where it has none, all with the time ``micros``; and, for cells whose qualifiers or times are data,
``cells``, an array of ``(family, qualifier, value, micros)``. Values are UTF-8 text, raw bytes for
``Payload`` and ``SignedVAA``; the time of a cell is the VAA's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from permalake.wormhole.contracts import tables
from permalake.wormhole.events.families import FAMILIES, Family

_PUBLICATION = tables.MESSAGE_PUBLICATION.name


def event_rows(lake: Mapping[str, DataFrame]) -> DataFrame:
    """Return the rows of the v2 table, one per published VAA, from the lake tables by name."""
    events = _publications(lake)
    for family in FAMILIES:
        if family.table.name != _PUBLICATION:
            own = lake[family.table.name].select("row_key", *cells_of(family))
            events = events.join(own, "row_key", "left")
    return events


def _publications(lake: Mapping[str, DataFrame]) -> DataFrame:
    family = next(family for family in FAMILIES if family.table.name == _PUBLICATION)
    return lake[_PUBLICATION].select("row_key", vaa_time(), *cells_of(family))


def vaa_time() -> Column:
    """Return the time of an event's cells, from the columns of ``message_publication``."""
    return F.unix_micros("timestamp").alias("micros")


def cells_of(family: Family) -> Sequence[Column]:
    """Return the family's cells, from the columns of its lake table."""
    return [
        spelled(family.table.column(column).type, F.col(column)).alias(f"{family.name}:{qualifier}")
        for qualifier, column in family.cells.items()
    ]


def spelled(kind: str, value: Column) -> Column:
    """Convert a lake column of a contract type to the text, or the raw bytes, of a cell."""
    if kind == "binary":
        return value
    if kind == "timestamptz":
        return F.date_format(value, "yyyy-MM-dd'T'HH:mm:ss'Z'")
    return value.cast("string")
