"""Text from a chain as a page may show it."""

from __future__ import annotations

import unicodedata
from typing import Any

LONGEST_TEXT = 2_000
"""Characters of a value that a page shows; JSON has all of it."""
_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode categories of control characters, marks of direction, surrogates and line separators."""


def shown(value: Any, most: int = LONGEST_TEXT) -> str:
    """Return text from a chain as a page may show it: marks for unseen characters, cut to ``most``.

    Marks count as they are long, so that hostile text does not fill a page.
    """
    text, length, marked = str(value), 0, list[str]()
    for letter in text[:most]:
        marked.append(_mark(letter))
        length += len(marked[-1])
        if length > most:
            return f"{''.join(marked[:-1])}… ({len(text):,} characters)"
    return "".join(marked) + ("" if len(text) <= most else f"… ({len(text):,} characters)")


def _mark(letter: str) -> str:
    if letter in "\n\t":
        return letter
    if unicodedata.category(letter) in _UNSEEN:
        return f"[U+{ord(letter):04X}]"
    return letter
