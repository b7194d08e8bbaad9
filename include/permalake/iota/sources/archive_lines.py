"""Lines of an ``archive_rest`` directory to records, without Spark.

Bodies are those of the REST API of a node (TIP-13 for Chrysalis, TIP-25 for Stardust), with raw bytes as hex.
A line without the shape that its file promises becomes a MALFORMED record with its exact bytes.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from permalake.contracts.quarantine import RAW_LIMIT, whole_in_words
from permalake.iota.codec.milestones import payload_time
from permalake.iota.cone.source_records import INCLUSION_STATES, Record
from permalake.pipeline.line_files import Damage

Row = dict[str, Any]
# What reading a line may raise when it is not what it should be.
UNREADABLE = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    struct.error,
)

_OWN_INDEX = re.compile(rb'"(?:milestone|milestone_index|index)"\s*:\s*([0-9]{1,10})\b')
_MAX_INDEX = 2**31 - 1


def load_json(line: bytes) -> Any:
    """Return the JSON of a line; raise ValueError when it is none or nested too deeply."""
    try:
        return json.loads(line, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"no JSON: {error}"[:200]) from None


def archive_rows(lines: Iterable[bytes | Damage], kind: Record, fallback: int) -> Iterator[Row]:
    """Yield a record of ``kind`` for every line.

    A line that is none belongs to milestone ``fallback`` unless it names its own.
    """
    shape = _SHAPES[kind]
    for line in lines:
        if isinstance(line, Damage):
            yield malformed_row(line.raw, line.reason, fallback)
            continue
        try:
            yield row(kind, **shape(load_json(line)))
        except UNREADABLE as error:
            yield malformed_row(line, error, fallback)


def milestone_time(line: bytes) -> tuple[int, int] | None:
    """Return (milestone index, time [unix s]) of a milestones line; None when it does not have both.

    The index is the line's own; the time is the payload's.
    """
    try:
        document = load_json(line)
        index, time = document["index"], payload_time(_hex(document["rawPayload"]))
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < 2**32 or time is None:
            return None
        return index, time
    except UNREADABLE:
        return None


def row(kind: Record, milestone: int, **values: Any) -> Row:
    """Return a record; columns that are not given are null."""
    absent = dict.fromkeys(("id", "raw", "link", "state", "conflict", "number"))
    return {**absent, **values, "kind": int(kind), "milestone": milestone}


def malformed_row(raw: bytes, reason: object, fallback: int) -> Row:
    """Return the MALFORMED record of a line: its bytes, or the head of many, and why it is no record."""
    match = _OWN_INDEX.search(raw)
    index = int(match[1]) if match and int(match[1]) <= _MAX_INDEX else fallback
    text = " ".join(f"{type(reason).__name__}: {reason}".split()) if isinstance(reason, KeyError) else reason
    why = str(text)[:300]
    if len(raw) > RAW_LIMIT:
        why = f"{why}; {whole_in_words(len(raw), sha256(raw).hexdigest())}"
    return row(Record.MALFORMED, index, raw=raw[:RAW_LIMIT], link=why.encode(errors="replace"))


def placed(records: pa.RecordBatch, begin: int, first: int, last: int) -> pa.RecordBatch:
    """Return records: malformed lines that name no milestone of ``first`` to ``last`` belong to ``begin``.

    These are the source's: no day would have the line.
    """
    is_malformed = pc.equal(records["kind"], int(Record.MALFORMED))
    if not pc.any(is_malformed).as_py():
        return records
    index = records["milestone"]
    outside = pc.or_(pc.less(index, first), pc.greater(index, last))
    index = pc.if_else(pc.and_(is_malformed, outside), pa.scalar(begin, index.type), index)
    at = records.schema.get_field_index("milestone")
    return records.set_column(at, records.schema.field(at), index)


def _milestone(document: Any) -> Row:
    return {
        "milestone": index_of(document["index"]),
        "id": _optional_hex(document.get("milestoneId")),
        "raw": _hex(document["rawPayload"]),
        "link": _optional_hex(document.get("messageId")),
        "number": _optional(document.get("coneSize"), _MAX_INDEX),
    }


def _block(document: Any) -> Row:
    metadata = document.get("metadata") or {}
    return {
        "milestone": index_of(document["milestone"]),
        "id": _optional_hex(metadata.get("blockId") or metadata.get("messageId")),
        "raw": _hex(document["raw"]),
        "state": INCLUSION_STATES.get(metadata.get("ledgerInclusionState") or ""),
        "conflict": _optional(metadata.get("conflictReason"), 2**15 - 1),
        "number": _optional(metadata.get("whiteFlagIndex"), _MAX_INDEX),
    }


def _consumed(document: Any) -> Row:
    return {
        "milestone": index_of(document["milestone"]),
        "id": _hex(document["outputId"]),
        "raw": _hex(document["rawOutput"]),
        "link": _optional_hex(document.get("transactionIdSpent")),
    }


def _changes(document: Any) -> Row:
    return {
        "milestone": index_of(document["index"]),
        "raw": b"".join(map(_hex, document.get("createdOutputs") or ())),
        "link": b"".join(map(_hex, document.get("consumedOutputs") or ())),
    }


_SHAPES: dict[Record, Callable[[Any], Row]] = {
    Record.MILESTONE: _milestone,
    Record.BLOCK: _block,
    Record.CONSUMED: _consumed,
    Record.CHANGES: _changes,
}


def index_of(value: Any) -> int:
    """Return a milestone index; raise ValueError unless it is a number of 0 to 2^31 - 1."""
    number = _optional(value, _MAX_INDEX)
    if number is None:
        raise ValueError("a milestone index is missing")
    return number


def _optional(value: Any, largest: int) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{str(value)[:40]!r} is no whole number")
    if not 0 <= value <= largest:
        raise ValueError("a number is out of range")
    return value


def _hex(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


def _optional_hex(text: str | None) -> bytes | None:
    return None if text is None else _hex(text)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")
