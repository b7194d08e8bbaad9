"""Documents of services as they are landed: the fields that count, and the day each belongs to."""

from __future__ import annotations

import base64
import binascii
import struct
from datetime import UTC, date, datetime
from typing import Any

from permalake.wormhole.codec.vaa import GENESIS_TIME
from permalake.wormhole.sources.document_cache import UNDATED, Document

MARGIN_SECONDS = 10 * 60
"""An operation carries the time of its transaction; its VAA's may differ so much."""
_HEADER, _SIGNATURE = 6, 66
_VAA_FIELDS = ("id", "vaa", "timestamp", "indexedAt", "txHash")


def trimmed_vaa(document: Document) -> Document:
    """Return the fields of a VAA document that are read, as they came."""
    return {name: document[name] for name in _VAA_FIELDS if document.get(name) is not None}


def trimmed_operation(document: Document) -> Document:
    """Return an operation without the fields that its VAA has anyway."""
    content = document.get("content")
    properties = content.get("standarizedProperties") if isinstance(content, dict) else None
    vaa = document.get("vaa")
    kept: Document = {
        "id": document.get("id"),
        "vaa": vaa.get("raw") if isinstance(vaa, dict) else None,
        "sourceChain": document.get("sourceChain"),
        "targetChain": document.get("targetChain"),
        "properties": properties,
        "data": document.get("data"),
    }
    return {name: value for name, value in kept.items() if value is not None}


def days_of_document(document: Document) -> tuple[date, date]:
    """Return the day under which a document is stored, and the one that it gives its VAA.

    Both follow from the VAA's own bytes, or from the document where the bytes show no body. A body without a
    real time is stored as :data:`UNDATED`, as other copies of it may hold more.
    """
    body = body_time(document.get("vaa"))
    if body is not None and body >= GENESIS_TIME.timestamp():
        return _day(body), _day(body)
    times = _day_of_times(document)
    return (times if body is None else UNDATED), times


def _day_of_times(document: Document) -> date:
    source = document.get("sourceChain")
    seen = document.get("timestamp") or (source.get("timestamp") if isinstance(source, dict) else None)
    for text in (seen, document.get("indexedAt")):
        second = unix_time(text)
        if second is not None and second >= GENESIS_TIME.timestamp():
            return _day(second)
    return UNDATED


def body_time(vaa: Any) -> int | None:
    """Time in the body of a VAA in base64, in unix seconds; None when the bytes show no body."""
    try:
        raw = base64.b64decode(vaa, validate=True)
        offset = _HEADER + _SIGNATURE * raw[5]
        (second,) = struct.unpack_from(">I", raw, offset)
    except (TypeError, ValueError, binascii.Error, IndexError, struct.error):
        return None
    return int(second) if raw[0] == 1 else None


def unix_time(text: Any) -> int | None:
    """Whole seconds of an RFC 3339 time; None when it is none."""
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() // 1)


def time_of_vaa(document: Document) -> int | None:
    """Time of a VAA document in unix seconds, as the explorer sorts it."""
    return unix_time(document.get("timestamp"))


def time_of_operation(document: Document) -> int | None:
    """Time of an operation's transaction in unix seconds, as the explorer sorts it."""
    source = document.get("sourceChain")
    return unix_time(source.get("timestamp")) if isinstance(source, dict) else None


def _day(second: int) -> date:
    return datetime.fromtimestamp(second, UTC).date()
