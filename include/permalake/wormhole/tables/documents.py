"""Documents of VAAs → candidates that a range of days verifies.

**The day of a VAA.** UTC date of its body's timestamp. Bodies before 2020-08-01 (governance carries 0 or 1)
and bytes that show no body take the date of the document's ``timestamp`` if that is not before 2020-08-01
either, else of its ``indexedAt``, else 1970-01-01. Several documents of one identity give it the earliest
of their dates, so that a copy without times (a CSV dump) does not move it.

**Whose word counts.** The bytes': a document that claims another identity than its bytes show is dated,
keyed and judged by the bytes, and its transaction id, which belongs to the other message, is not taken
over.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Observation, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from permalake.wormhole.codec.vaa import decode_vaas

GENESIS = dt.date(2020, 8, 1)
NEVER = dt.date(1970, 1, 1)

# VAA v1: version u8, guardian set u32, signature count u8, signatures of 66 bytes, then the body.
_HEADER = 6
_SIGNATURE = 66
_SECONDS_A_DAY = 86_400


def candidates(documents: DataFrame, start: dt.date, end: dt.date) -> DataFrame:
    """Return the distinct VAAs that decide the days ``start..end`` (inclusive).

    Columns: raw, source, origin, claimed_id, fault, tx_id, date, in_range. Rows with ``in_range`` belong to
    those days; the others are copies of the same identities that the source holds for other days. They are
    needed because two verified bodies of one identity cancel each other wherever they lie.
    """
    known = identified(documents)
    near = F.col("body_date").between(F.lit(start), F.lit(end)) | _undated()
    counted = Observation()
    counting = known.observe(counted, F.count_if(~near).alias("far"))
    dated = _dated(_distinct(counting.where(near)))
    # Kept, so that the source is read twice at most: for these days' documents, and for copies of their
    # identities, if it holds documents of other days at all.
    at_hand = dated.withColumn("in_range", F.col("date").between(F.lit(start), F.lit(end))).localCheckpoint()
    mine = at_hand.where("in_range")
    identities = mine.select("identity").distinct()
    undated = at_hand.where("NOT in_range").join(identities, "identity", "left_semi")
    found = mine.unionByName(undated)
    if counted.get.get("far") != 0:
        far = _distinct(known.where(~near).join(identities, "identity", "left_semi"))
        found = found.unionByName(
            far.select("*", F.col("body_date").alias("date"), F.lit(False).alias("in_range"))
        )
    return found.drop("identity", "body_date", "told")


def _number(offset: Column, size: int) -> Column:
    """Big-endian unsigned number of ``size`` bytes at 0-based ``offset`` of ``raw``, as decimal text."""
    return F.conv(F.hex(F.substring(F.col("raw"), offset + 1, F.lit(size))), 16, 10)


def dated(documents: DataFrame) -> DataFrame:
    """Return one row per distinct bytes, with identity, ``body_date`` and ``date``.

    ``date`` is the one that these documents alone give it.
    """
    return _dated(_distinct(identified(documents)))


def body_of(raw: Column) -> Column:
    """Return the body of a readable VAA."""
    return F.substring(raw, _body_offset() + 1, F.length(raw))


def _body_offset() -> Column:
    return F.lit(_HEADER) + F.lit(_SIGNATURE) * _number(F.lit(5), 1).cast("int")


def identified(frame: DataFrame) -> DataFrame:
    """Add (identity, body_date) as the bytes ``raw`` show them, where ``fault`` is null.

    Both are null where the bytes hold no body of version 1. Read by columns: Spark would write the offsets of
    each field, and how ``raw`` was made, into every predicate on them.
    """
    schema = StructType(frame.schema.fields.copy()).add("identity", "string").add("body_date", "date")
    return frame.mapInArrow(_identities, schema)


def _identities(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        vaas = decode_vaas(batch["raw"])
        unknown = pc.or_(pa.array(~vaas.has_body), pc.is_valid(batch["fault"]))
        identity = pc.binary_join_element_wise(
            pa.array(vaas.emitter_chain).cast(pa.string()),
            vaas.emitter_hex(),
            pa.array(vaas.sequence).cast(pa.string()),
            "/",
        )
        days = pa.array((vaas.timestamp // _SECONDS_A_DAY).astype(np.int32)).cast(pa.date32())
        columns = [pc.if_else(unknown, None, identity), pc.if_else(unknown, None, days)]
        yield pa.RecordBatch.from_arrays(
            [*batch.columns, *columns], [*batch.schema.names, "identity", "body_date"]
        )


def _undated() -> Column:
    return F.col("body_date").isNull() | (F.col("body_date") < F.lit(GENESIS))


def _distinct(documents: DataFrame) -> DataFrame:
    """One row per distinct bytes, with the earliest date ``told``: a VAA may stand in several files."""
    told_at = F.when(F.col("document_time") >= F.lit(GENESIS), F.col("document_time"))
    own = F.coalesce(F.lower("claimed_id") == F.col("identity"), F.lit(True))
    grouped = documents.groupBy("raw", "identity", "body_date").agg(
        F.min(F.struct("origin", "source", "claimed_id", "fault")).alias("first"),
        F.min(F.when(own, F.col("tx_id"))).alias("tx_id"),
        F.min(F.coalesce(told_at, F.col("indexed_at"))).cast("date").alias("told"),
    )
    return grouped.select("raw", "identity", "body_date", "told", "tx_id", "first.*")


def _dated(distinct: DataFrame) -> DataFrame:
    of_one_message = Window.partitionBy(F.coalesce("identity", F.sha2("raw", 256)))
    told = F.min(F.when(_undated(), F.col("told"))).over(of_one_message)
    date = F.when(_undated(), F.coalesce(told, F.lit(NEVER))).otherwise(F.col("body_date"))
    return distinct.withColumn("date", date)
