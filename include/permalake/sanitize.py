"""Text from a chain, or the name of a file, as a page or a terminal may show it."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

LONGEST_TEXT = 2_000
"""Characters of a value that a page shows; JSON has all of it."""
LONGEST_MESSAGE = 20_000
"""Characters of a line that a terminal shows."""
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


def escaped(json_text: str) -> str:
    """Return JSON of the same values without unseen characters, which a terminal would obey."""
    return "".join(json.dumps(letter)[1:-1] if _is_unseen(letter) else letter for letter in json_text)


def _mark(letter: str) -> str:
    return f"[U+{ord(letter):04X}]" if _is_unseen(letter) else letter


def _is_unseen(letter: str) -> bool:
    return letter not in "\n\t" and unicodedata.category(letter) in _UNSEEN
