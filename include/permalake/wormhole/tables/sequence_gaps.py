"""Documents of VAAs → sequences that no document has, between two that one has.

An emitter counts its messages, so what lies between is a VAA that the source lacks. A step of more than
``LONGEST`` is no gap: governance chooses its sequences at random, and contracts start anew.
"""

from __future__ import annotations

import datetime as dt

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from permalake.wormhole.codec.vaa import GENESIS
from permalake.wormhole.tables.documents import identified

LONGEST = 100
EMITTER = ("emitter_chain", "emitter_address")


def gaps(documents: DataFrame, start: dt.date, end: dt.date) -> DataFrame:
    """Return missing sequences (date, emitter_chain, emitter_address, first, last), both inclusive.

    They lie between neighbours of which at least one is within ``start..end`` and the other no more than a
    day away. ``date`` is that of the neighbour in the range, of the later one if both are. Neighbours count
    whether they are verified or not.
    """
    before, after = start - dt.timedelta(1), end + dt.timedelta(1)
    with_identity = identified(documents.select("raw", "fault")).where(
        F.col("body_date").between(F.lit(before), F.lit(after)) & (F.col("body_date") >= F.lit(GENESIS))
    )
    numbered = with_identity.select(
        _part(1).cast("int").alias("emitter_chain"),
        _part(2).alias("emitter_address"),
        _part(3).cast("decimal(20,0)").alias("sequence"),
        "body_date",
    )
    met = numbered.groupBy(*EMITTER, "sequence").agg(F.max("body_date").alias("later"))
    in_turn = Window.partitionBy(*EMITTER).orderBy("sequence")
    pairs = met.select(
        *EMITTER,
        "later",
        F.lag("later").over(in_turn).alias("earlier"),
        (F.lag("sequence").over(in_turn) + 1).cast("decimal(20,0)").alias("first"),
        (F.col("sequence") - 1).cast("decimal(20,0)").alias("last"),
    )
    inside = F.col("later").between(F.lit(start), F.lit(end))
    return pairs.where(
        F.col("first").isNotNull()
        & (F.col("last") >= F.col("first"))
        & (F.col("last") - F.col("first") < LONGEST)
        & (inside | F.col("earlier").between(F.lit(start), F.lit(end)))
    ).select(
        F.when(inside, F.col("later")).otherwise(F.col("earlier")).alias("date"), *EMITTER, "first", "last"
    )


def _part(number: int) -> Column:
    return F.split_part(F.col("identity"), F.lit("/"), F.lit(number))
