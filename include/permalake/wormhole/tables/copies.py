"""Documents → distinct VAAs with their days, and which of several copies of a message is published.

The rules of dates stand in :mod:`permalake.wormhole.tables.documents`.
"""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from permalake.arrays.cursor import I64
from permalake.wormhole.codec.vaa import GENESIS, GENESIS_TIME

NEVER = dt.date(1970, 1, 1)
VAA_SCHEMA = pa.schema(
    [
        ("message", pa.string()),
        ("identity", pa.string()),
        ("body_date", pa.date32()),
        ("raw", pa.binary()),
        ("source", pa.string()),
        ("origin", pa.string()),
        ("claimed_id", pa.string()),
        ("fault", pa.string()),
        ("tx_id", pa.string()),
        ("date", pa.date32()),
    ]
)
"""Columns of :func:`distinct_vaas`."""
_ORDER = ("message", "raw", "origin", "source", "claimed_id", "fault")


def distinct_vaas(documents: pa.Table) -> pa.Table:
    """Return one row per distinct bytes of whole messages, ordered by ``message`` and ``raw``.

    Of several documents the first by origin names the source; the transaction id is the least of those that
    speak of this message; ``date`` is the day of the VAA.
    """
    documents = documents.combine_chunks()
    order = pc.sort_indices(documents, [(name, "ascending", "at_start") for name in _ORDER])
    ordered = documents.take(order).combine_chunks()
    first = _begins(ordered["message"]) | _begins(ordered["raw"])
    place = np.cumsum(first) - 1
    # A claim may be any bytes, also such as are no UTF-8.
    is_own_claim = pc.fill_null(pc.equal(pc.ascii_lower(ordered["claimed_id"]), ordered["identity"]), True)
    tx_id = pc.if_else(is_own_claim, ordered["tx_id"], pa.scalar(None, pa.string()))
    document_time = ordered["document_time"].cast(pa.timestamp("us", tz="UTC"))
    genesis = pa.scalar(GENESIS_TIME, document_time.type)
    day_time = pc.if_else(pc.greater_equal(document_time, genesis), document_time, None)
    day_time = pc.coalesce(day_time, ordered["indexed_at"].cast(document_time.type))
    distinct = ordered.filter(pa.array(first))
    distinct = distinct.set_column(distinct.schema.get_field_index("tx_id"), "tx_id", least(tx_id, place))
    day_of = least(day_time, place).cast(pa.date32())
    dates = _dates(distinct, day_of)
    return distinct.append_column("date", dates).select(VAA_SCHEMA.names).cast(VAA_SCHEMA)


def _dates(distinct: pa.Table, reported: pa.Array) -> pa.Array:
    """Return the day of each VAA; ``reported`` are the days that documents give."""
    body = distinct["body_date"].combine_chunks()
    undated = pc.or_kleene(pc.is_null(body), pc.less(body, pa.scalar(GENESIS)))
    if not pc.any(undated).as_py():
        return body
    message = message_places(distinct["message"])
    earliest = least(pc.if_else(undated, reported, None), message).take(pa.array(message))
    return pc.if_else(undated, pc.fill_null(earliest, pa.scalar(NEVER)), body)


def of_days(vaas: pa.Table, start: dt.date, end: dt.date) -> pa.Table:
    """Return the VAAs of messages that have one in ``start..end``, and whether each is: ``in_range``."""
    dates = vaas["date"]
    inside = pc.and_(pc.greater_equal(dates, pa.scalar(start)), pc.less_equal(dates, pa.scalar(end)))
    inside = inside.combine_chunks().to_numpy(zero_copy_only=False)
    vaas = vaas.append_column("in_range", pa.array(inside))
    if inside.all():
        return vaas
    message = message_places(vaas["message"])
    is_of_days = np.bincount(message, inside, minlength=len(vaas)) > 0
    return vaas.filter(pa.array(is_of_days[message]))


def message_places(message: pa.ChunkedArray) -> I64:
    """Return the ordinal of each row's message, i64[n], where messages come one after another."""
    places: I64 = np.cumsum(_begins(message)) - 1
    return places


def least(values: pa.Array | pa.ChunkedArray, place: I64) -> pa.Array:
    """Return the least value of each place, null where all are; places come in order and without gaps."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if len(place) == 0 or place[-1] == len(place) - 1:
        return values
    grouped = pa.table({"place": pa.array(place), "value": values}).group_by("place", use_threads=False)
    least_values = grouped.aggregate([("value", "min")]).sort_by("place")
    return least_values["value_min"].combine_chunks().cast(values.type)


def _begins(values: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Return where a value differs from the one before it, bool[n]."""
    begins = np.ones(len(values), bool)
    differs = pc.fill_null(pc.not_equal(values[1:], values[:-1]), True)
    begins[1:] = differs.to_numpy()
    return begins
