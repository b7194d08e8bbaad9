"""A cursor over one payload: big-endian numbers, addresses, text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

WORD_SIZE = 32
EVM_ADDRESS_SIZE = 20

Item = TypeVar("Item")


class LayoutError(ValueError):
    """Raised when a payload does not have the expected layout."""


class PayloadReader:
    """Reads a payload field by field; every method raises :class:`LayoutError` beyond its end."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._at = 0

    @property
    def remaining(self) -> int:
        """Number of bytes not read yet."""
        return len(self._payload) - self._at

    def raw(self, size: int) -> bytes:
        """Return the next ``size`` bytes."""
        if size > self.remaining:
            raise LayoutError(f"{size} bytes expected at {self._at}, {self.remaining} left")
        self._at += size
        return self._payload[self._at - size : self._at]

    def rest(self) -> bytes:
        """Return all bytes not read yet."""
        return self.raw(self.remaining)

    def number(self, size: int) -> int:
        """Return an unsigned number of ``size`` bytes."""
        return int.from_bytes(self.raw(size), "big")

    def uint256(self) -> str:
        """Return an unsigned 256-bit number as decimal text."""
        return str(self.number(WORD_SIZE))

    def word(self) -> str:
        """Return 32 bytes as hex."""
        return self.raw(WORD_SIZE).hex()

    def evm_address(self) -> str:
        """Return a 20-byte address as 0x-hex."""
        return "0x" + self.raw(EVM_ADDRESS_SIZE).hex()

    def text(self, size: int) -> str:
        """Return printable text of ``size`` bytes without the NULs and spaces that pad it."""
        value = self.raw(size).strip(b"\0 ")
        try:
            text = value.decode("utf-8")
        except UnicodeDecodeError as error:
            raise LayoutError(f"not UTF-8: {value.hex()}") from error
        if not text.isprintable():
            raise LayoutError(f"not printable: {value.hex()}")
        return text

    def end(self) -> None:
        """Make sure that nothing is left."""
        if self.remaining:
            raise LayoutError(f"{self.remaining} bytes too many")

    def expect(self, value: bytes) -> None:
        """Skip bytes that the layout fixes."""
        if (raw := self.raw(len(value))) != value:
            raise LayoutError(f"{value.hex()} expected, {raw.hex()} found")

    def repeated(self, count: int, read: Callable[[], Item]) -> list[Item]:
        """Return ``count`` items, each read by ``read``."""
        return [read() for _ in range(count)]
