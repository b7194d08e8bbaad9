"""Lake tables → rows of the Bigtable event table v2.

Rows of a store frame: ``row_key`` (text) and ``cells``, an array of ``(family, qualifier, value, micros)``.
Values are UTF-8 text, raw bytes for ``Payload`` and ``SignedVAA``; a null makes no cell; the cell timestamp
is the VAA's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from permalake.contracts import wormhole
from permalake.contracts.bigtable import FAMILIES, Family

CELL = "struct<family:string,qualifier:string,value:binary,micros:bigint>"
_PUBLICATION = wormhole.MESSAGE_PUBLICATION.name


def event_rows(lake: Mapping[str, DataFrame]) -> DataFrame:
    """Rows of the v2 table, one per published VAA, from the lake tables by name."""
    events = _publications(lake)
    for family in FAMILIES:
        if family.table.name != _PUBLICATION:
            own = lake[family.table.name].select("row_key", *_renamed(family))
            events = events.join(own, "row_key", "left")
    return events.select("row_key", present(*(cells_of(family) for family in FAMILIES)))


def _publications(lake: Mapping[str, DataFrame]) -> DataFrame:
    family = next(family for family in FAMILIES if family.table.name == _PUBLICATION)
    return lake[_PUBLICATION].select("row_key", F.unix_micros("timestamp").alias("micros"), *_renamed(family))


def _renamed(family: Family) -> Sequence[Column]:
    return [
        as_bytes(family.table.column(column).type, F.col(column)).alias(f"{family.name}:{qualifier}")
        for qualifier, column in family.cells.items()
    ]


def cells_of(family: Family) -> Column:
    """The family's cells as an array; nulls where a value is null. Reads the columns named
    ``FAMILY:QUALIFIER`` and ``micros``."""
    return F.array(
        *(
            cell(F.lit(family.name), F.lit(qualifier), F.col(f"`{family.name}:{qualifier}`"), F.col("micros"))
            for qualifier in family.cells
        )
    )


def cell(family: Column, qualifier: Column, value: Column, micros: Column) -> Column:
    """One cell; null when its value is null."""
    whole = F.struct(
        family.alias("family"), qualifier.alias("qualifier"), value.alias("value"), micros.alias("micros")
    )
    return F.when(value.isNotNull(), whole).cast(CELL)


def present(*cells: Column) -> Column:
    """Arrays of cells as one, without nulls, named ``cells``."""
    return F.filter(F.concat(*cells), lambda one: one.isNotNull()).alias("cells")


def as_bytes(kind: str, value: Column) -> Column:
    """A lake column of that contract type as the bytes of a cell."""
    if kind == "binary":
        return value
    if kind == "timestamptz":
        return F.encode(F.date_format(value, "yyyy-MM-dd'T'HH:mm:ss'Z'"), "UTF-8")
    return F.encode(value.cast("string"), "UTF-8")
