"""Seeded mutations of JSON documents and of lines of text."""

from __future__ import annotations

import json

VALUES = (
    *(None, True, -1, 0, 2**31, 2**63, 2**64, 2**300, 1e308, float("inf"), "", "x", "0x", "9" * 400),
    *("\ud800", "1e1000000", "2024-13-45T99:99:99Z", "9999-12-31T23:59:59.999999999+14:00"),
    *([], {}, [[]], {"": None}, [None], "0001-01-01T00:00:00+23:59"),
)


def mutated(rng, value):
    """A document with one to three changes: of its bytes, or of a value anywhere in it."""
    for _ in range(rng.randrange(1, 4)):
        if rng.random() < 0.3:
            text = bytearray(json.dumps(value).encode())
            for _ in range(rng.randrange(1, 4)):
                text[rng.randrange(len(text))] = rng.randrange(256)
            return bytes(text)
        value = replaced(rng, value)
    return json.dumps(value).encode()


def replaced(rng, value):
    inner = isinstance(value, dict | list) and value and rng.random() < 0.85
    if not inner:
        return rng.choice(VALUES)
    if isinstance(value, dict):
        key = rng.choice(list(value))
        if rng.random() < 0.1:
            return {name: one for name, one in value.items() if name != key}
        return {**value, key: replaced(rng, value[key])}
    number = rng.randrange(len(value))
    return [*value[:number], replaced(rng, value[number]), *value[number + 1 :]]


def mutated_line(rng, line):
    """A line with one to four changes of its bytes; it stays one line."""
    text = bytearray(line)
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(len(text))
        change = rng.randrange(5)
        if change == 0:
            text[at] = rng.randrange(256)
        elif change == 4:
            text[at] ^= 1 << rng.randrange(8)
        elif change == 1:
            del text[at : at + rng.randrange(1, 50)]
        elif change == 2:
            text[at:at] = text[at : at + rng.randrange(1, 50)]
        else:
            text[at:at] = rng.choice(
                [b"[" * 5_000, b"1e1000000", b"9" * 5_000, b"\xff\x00", b'"', b"{", b","]
            )
        text = text or bytearray(b"x")
    return one_line(bytes(text))


def one_line(text):
    """The bytes without what ends a line."""
    return text.replace(b"\n", b" ").replace(b"\r", b" ")
