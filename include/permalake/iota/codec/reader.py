"""A single structure read byte by byte; a missing byte is a :class:`DecodeError`."""

from __future__ import annotations

from collections.abc import Sequence

from permalake.iota.codec.faults import DecodeError, Fault


class Reader:
    """Reads one payload from front to back."""

    def __init__(self, data: bytes) -> None:
        self.data, self.position = data, 0

    def take(self, length: int) -> bytes:
        """The next ``length`` bytes."""
        end = self.position + length
        if end > len(self.data):
            raise DecodeError(Fault.TRUNCATED)
        part = self.data[self.position : end]
        self.position = end
        return part

    def pieces(self, count: int, width: int) -> tuple[bytes, ...]:
        """The next ``count`` elements of ``width`` bytes."""
        block = self.take(count * width)
        return tuple(block[at : at + width] for at in range(0, len(block), width))

    def uint(self, width: int) -> int:
        """The next little-endian unsigned integer of ``width`` bytes."""
        return int.from_bytes(self.take(width), "little")

    def finish(self, fault: Fault = Fault.TRAILING) -> None:
        """Everything must have been read."""
        demand(self.position == len(self.data), fault)


def demand(holds: bool, fault: Fault) -> None:
    """Raise :class:`DecodeError` unless the rule holds."""
    if not holds:
        raise DecodeError(fault)


def ascending(values: Sequence[bytes]) -> bool:
    """Sorted and unique."""
    return list(values) == sorted(set(values))
