"""Documents of VAAs → those that decide a range of days, and the day of each.

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
import hashlib
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from permalake.wormhole.codec.vaa import GENESIS, decode_vaas
from permalake.wormhole.tables.copies import VAA_SCHEMA, distinct_vaas

# VAA v1: version u8, guardian set u32, signature count u8, signatures of 66 bytes, then the body.
_HEADER = 6
_SIGNATURE = 66
_SECONDS_A_DAY = 86_400
_TASKS_PER_CORE = 2
_FEW_DOCUMENTS = 1_000
_GROUP_ROWS, _GROUP_BYTES = 10_000, 64 << 20
COLUMNS = (
    *("message", "identity", "body_date", "raw", "source", "origin", "claimed_id", "fault"),
    *("tx_id", "document_time", "indexed_at"),
)
"""Columns of documents with what their bytes show (:func:`identified`)."""


def deciding(documents: DataFrame, start: dt.date, end: dt.date) -> DataFrame:
    """Return the documents that decide the days ``start..end`` (inclusive), all of a message side by side.

    Columns: ``message`` (the row key, or a hash of bytes that show none), identity, body_date, and the
    documents' own. Documents of other days are among them: two verified bodies of one identity cancel each
    other wherever they lie.
    """
    with_identity = identified(documents)
    near = F.col("body_date").between(F.lit(start), F.lit(end)) | _undated()
    counted = Observation()
    counting = with_identity.observe(counted, F.count_if(~near).alias("far"), F.count_if(near).alias("near"))
    # Signatures are most of the work, and few rows at once are much of it.
    tasks = _TASKS_PER_CORE * documents.sparkSession.sparkContext.defaultParallelism
    # Kept, so that the source is read twice at most: for these days' documents, and for copies of their
    # identities, if it holds documents of other days at all.
    near_copies = counting.where(near).select(*COLUMNS).repartition(tasks, "message").localCheckpoint()
    if counted.get.get("far") != 0:
        identities = near_copies.select("identity").distinct()
        far = with_identity.where(~near).join(identities, "identity", "left_semi").select(*COLUMNS)
        near_copies = near_copies.unionByName(far).repartition(tasks, "message")
    if counted.get.get("near", 0) <= _FEW_DOCUMENTS:
        near_copies = near_copies.coalesce(1)
    return near_copies.sortWithinPartitions("message")


def dated(documents: DataFrame) -> DataFrame:
    """Return one row per distinct bytes, with identity, ``body_date`` and ``date``.

    ``date`` is the one that these documents alone give it.
    """
    together = identified(documents).select(*COLUMNS).repartition("message").sortWithinPartitions("message")
    return together.mapInArrow(_distinct, from_arrow_schema(VAA_SCHEMA))


def _distinct(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for group in whole_messages(batches):
        yield from distinct_vaas(group).to_batches()


def whole_messages(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield rows that come sorted by ``message`` in groups that hold all rows of each of theirs."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows < _GROUP_ROWS and size < _GROUP_BYTES:
            continue
        together = pa.Table.from_batches(held)
        cut = pc.index(together["message"], together["message"][-1]).as_py()
        if cut:
            yield together.slice(0, cut)
        held, rows = together.slice(cut).to_batches(), rows - cut
        size = sum(batch.nbytes for batch in held)
    if rows:
        yield pa.Table.from_batches(held)


def body_of(raw: Column) -> Column:
    """Return the body of a readable VAA."""
    begin = F.lit(_HEADER + 1) + F.lit(_SIGNATURE) * signature_count(raw)
    return F.substring(raw, begin, F.length(raw))


def signature_count(raw: Column) -> Column:
    """Return the number of signatures of a readable VAA."""
    return F.conv(F.hex(F.substring(raw, _HEADER, 1)), 16, 10).cast("int")


def identified(frame: DataFrame) -> DataFrame:
    """Add (message, identity, body_date) as the bytes ``raw`` show them, where ``fault`` is null.

    Where the bytes hold no body of version 1, the latter two are null and ``message`` is a hash of the
    bytes.
    Read by columns: Spark would write the offsets of each field, and how ``raw`` was made, into every
    predicate on them.
    """
    schema = StructType(frame.schema.fields.copy())
    for name, kind in (("message", "string"), ("identity", "string"), ("body_date", "date")):
        schema = schema.add(name, kind)
    return frame.mapInArrow(identities, schema)


def identities(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield documents with (message, identity, body_date), as :func:`identified` adds them."""
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
        columns = [
            pc.if_else(unknown, _hashes(batch["raw"], unknown), vaas.row_key()),
            pc.if_else(unknown, None, identity),
            pc.if_else(unknown, None, days),
        ]
        names = [*batch.schema.names, "message", "identity", "body_date"]
        yield pa.RecordBatch.from_arrays([*batch.columns, *columns], names)


def _hashes(raw: pa.Array, mask: pa.Array) -> pa.Array:
    """Return hashes of the wanted bytes; null elsewhere."""
    hashed: list[str | None] = [None] * len(raw)
    for row in np.flatnonzero(mask.to_numpy(zero_copy_only=False)).tolist():
        hashed[row] = hashlib.sha256(raw[row].as_py() or b"").hexdigest()
    return pa.array(hashed, pa.string())


def _undated() -> Column:
    return F.col("body_date").isNull() | (F.col("body_date") < F.lit(GENESIS))
