"""Cursors and bodies that a client would have to forge: values at and beyond every bound."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

VALUES = (
    *("-1", "0", "2147483648", "4294967296", "9223372036854775807", "9223372036854775808"),
    *("-9223372036854775809", "253402300800000000", "1" + "0" * 60, "1" * 1500, "1.5", "1e999", "NaN"),
    *('""', '"x"', '"\\u0000"', '"\\ud800"', '"0001-01-01"', '"9999-12-31"', '"2022-13-40"', '"-infinity"'),
    *("null", "true", "[]", "{}", '["a"]'),
)
"""JSON texts."""
DEEP = ("[" * 1500, '{"a":' * 300, "[" * 750 + "]" * 750)


def decoded(cursor: str) -> list[Any]:
    """Return what a cursor holds."""
    content: list[Any] = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    return content


def forged(text: str | bytes) -> str:
    """Return JSON text as a cursor."""
    raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def forged_cursors(cursor: str) -> Iterator[str]:
    """Yield cursors that differ from a valid one in one value, in their length, or altogether."""
    binding, size, after = decoded(cursor)
    shown = [json.dumps(value) for value in after]

    def text(size: str, positions: list[str]) -> str:
        return forged(f"[{json.dumps(binding)},{size},[{','.join(positions)}]]")

    for at in range(len(after)):
        for value in VALUES:
            yield text(str(size), [*shown[:at], value, *shown[at + 1 :]])
    for value in VALUES:
        yield text(value, shown)
    for positions in ([], shown[:-1], [*shown, "1"]):
        yield text(str(size), positions)
    yield from map(forged, (*DEEP, b"\xff\xfe", "", "null", "[]"))
    yield from ("!", "é", "A", "=" * 10)


def forged_bodies(document: dict[str, Any]) -> Iterator[bytes]:
    """Yield bodies that differ from a valid one in the value at one path, or that are none."""
    mark = "\x01mark"
    for path in list(_paths(document)):
        shown = json.dumps(_replaced(document, path, mark))
        for value in (*VALUES, '"' + "9" * 5000 + '"', "9" * 5000):
            # Readers take numbers for texts of digits.
            if value.strip('"') != json.dumps(_value(document, path)).strip('"'):
                yield shown.replace(json.dumps(mark), value).encode()
    yield from (text.encode() for text in DEEP)
    yield from (b"", b"null", b"[]", b'"a"', b"{", b"\xff", b"\xef\xbb\xbf{}", b"1" * 5000)


def _paths(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the places of a document, the first item of a list alone."""
    yield path
    members = document.items() if isinstance(document, dict) else ()
    if isinstance(document, list):
        members = enumerate(document[:1])  # type: ignore[assignment]
    for key, value in members:
        yield from _paths(value, (*path, key))


def _value(document: Any, path: tuple[Any, ...]) -> Any:
    return _value(document[path[0]], path[1:]) if path else document


def _replaced(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    copy = dict(document) if isinstance(document, dict) else list(document)
    copy[path[0]] = _replaced(document[path[0]], path[1:], value)
    return copy
