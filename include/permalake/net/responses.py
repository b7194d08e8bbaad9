"""Responses of web services: bounded decoding of bodies and JSON."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")
Shape = Callable[[Any], T]
"""Turns a document into the caller's own type; one of :data:`MALFORMED` rejects the document."""

MALFORMED = (
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    AttributeError,
    RecursionError,
    struct.error,
)
"""Errors by which a shape says that a document has the wrong form."""

ENCODINGS = "gzip"
"""Content codings that a request asks for."""

_MOST_ELEMENTS = 1_000_000
"""Objects, lists and their members. The largest honest answer, ids of outputs in 32 MiB, has half a
million; thirty megabytes of ``{}`` would take eight hundred of memory."""
_MOST_DIGITS = 100
"""Digits of a number; a u256 has 78."""
_LARGEST_EXPONENT = 400
"""Beyond the range of a double. ``int(Decimal("1e1000000000"))`` would take gigabytes."""
_PIECE = 64 * 2**10


@dataclass(frozen=True)
class Body:
    """The decoded bytes of a response and its media type (lower case, without parameters)."""

    content: bytes
    media: str


def decoded(parts: Iterable[bytes], encoding: str, limit: int) -> Iterator[bytes]:
    """Decode a body piece by piece, never more than ``limit`` bytes in all.

    Raises:
        ValueError: The body is larger, does not decompress, or has a coding that was not asked for. Two
            codings on top of each other count as such: a megabyte of them can hold a terabyte.
    """
    size = 0
    for piece in _decompressed(parts, encoding.strip().lower()):
        size += len(piece)
        if size > limit:
            raise ValueError(f"an answer of more than {limit} bytes")
        yield piece


def _decompressed(parts: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    if encoding in ("", "identity"):
        yield from parts
        return
    if encoding not in ("gzip", "x-gzip"):
        raise ValueError("an answer in a coding that was not asked for")
    stream = zlib.decompressobj(wbits=31)
    try:
        for part in parts:
            rest = part
            while rest and not stream.eof:
                yield stream.decompress(rest, _PIECE)
                rest = stream.unconsumed_tail
    except zlib.error:
        raise ValueError("an answer that does not decompress") from None
    if not stream.eof:
        raise ValueError("the answer broke off")


def media_type(header: str) -> str:
    """Return the media type of a Content-Type header, in lower case and without parameters."""
    return header.partition(";")[0].strip().lower()


def document(body: Body) -> Any:
    """Parse a JSON body; numbers with a point become exact decimals.

    Raises:
        ValueError: The body is no JSON, has too many elements, is nested too deeply, or holds a number beyond
            all bounds.
    """
    # Each begins behind one of these bytes; inside texts they count too, which does no harm.
    if sum(map(body.content.count, (b",", b"[", b"{"))) > _MOST_ELEMENTS:
        raise _BoundsError(f"more than {_MOST_ELEMENTS} elements")
    try:
        return json.loads(body.content, parse_float=_decimal, parse_int=_integer, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except _BoundsError:
        raise
    except ValueError:
        raise ValueError("no JSON") from None


def document_or_none(body: Body) -> Any:
    """Parse a JSON body; return None when it is none."""
    try:
        return document(body)
    except ValueError:
        return None


def wrong_form(error: Exception) -> str:
    """Describe why a shape rejected a document, on one short line."""
    if isinstance(error, KeyError) and error.args:
        return f"no {error.args[0]!r}"[:80]
    return " ".join(str(error).split())[:80] or type(error).__name__


class _BoundsError(ValueError):
    """Too many elements, or a number with too many digits or too large an exponent."""


def _decimal(text: str) -> Decimal:
    if len(text) > _MOST_DIGITS:
        raise _BoundsError("a number with too many digits")
    number = Decimal(text)
    if number and abs(number.adjusted()) > _LARGEST_EXPONENT:
        raise _BoundsError("a number beyond all bounds")
    return number


def _integer(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise _BoundsError("a number with too many digits")
    return int(text)


def _no_number(text: str) -> NoReturn:
    raise _BoundsError(f"{text} is no number")
