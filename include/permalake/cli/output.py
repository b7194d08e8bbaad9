"""The printing of rows: the place, and the form; light to import."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Literal, Self, cast

Format = Literal["table", "json", "csv", "sheet"]
"""``sheet`` is CSV in which nothing is taken for a formula."""
FORMAT_HELP = "How to print the rows; sheet is CSV in which a spreadsheet takes nothing for a formula."
_PART = 1 << 16


@dataclass(frozen=True)
class Screen:
    """Where text ends up: whether that is a terminal, and how it is encoded."""

    is_terminal: bool
    encoding: str

    @classmethod
    def of(cls, stream: IO[str]) -> Self:
        """Return what a stream is."""
        return cls(stream.isatty(), getattr(stream, "encoding", None) or "utf-8")


def sent_text(send: Callable[[str], None], screen: Screen) -> IO[str]:
    """Return a stream whose text is sent, in parts of some size, to where the screen is."""
    return cast(IO[str], _SentText(send, screen))


class _SentText(io.TextIOBase):
    def __init__(self, send: Callable[[str], None], screen: Screen) -> None:
        self._send, self._screen = send, screen
        self._held: list[str] = []
        self._size = 0

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Encoding of the screen."""
        return self._screen.encoding

    def isatty(self) -> bool:
        """Return whether the text ends up on a terminal."""
        return self._screen.is_terminal

    def writable(self) -> bool:
        """Return that it can be written to."""
        return True

    def write(self, text: str) -> int:
        """Hold text until there is enough of it to send."""
        self._held.append(text)
        self._size += len(text)
        if self._size >= _PART:
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Send what is held."""
        if self._held:
            self._send("".join(self._held))
            self._held, self._size = [], 0
