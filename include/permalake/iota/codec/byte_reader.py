"""Reading a single structure byte by byte."""

from __future__ import annotations

from collections.abc import Sequence

from permalake.iota.codec.faults import DecodeError, Fault


class ByteReader:
    """A payload that is read from front to back; missing bytes raise :class:`DecodeError`."""

    def __init__(self, data: bytes) -> None:
        self.data, self.position = data, 0

    def take(self, length: int) -> bytes:
        """Return the next ``length`` bytes."""
        end = self.position + length
        if end > len(self.data):
            raise DecodeError(Fault.TRUNCATED)
        part = self.data[self.position : end]
        self.position = end
        return part

    def pieces(self, count: int, width: int) -> tuple[bytes, ...]:
        """Return the next ``count`` elements of ``width`` bytes."""
        block = self.take(count * width)
        return tuple(block[at : at + width] for at in range(0, len(block), width))

    def uint(self, width: int) -> int:
        """Return the next little-endian unsigned integer of ``width`` bytes."""
        return int.from_bytes(self.take(width), "little")

    def finish(self, fault: Fault = Fault.TRAILING) -> None:
        """Raise :class:`DecodeError` if bytes are left."""
        demand(self.position == len(self.data), fault)


def demand(holds: bool, fault: Fault) -> None:
    """Raise :class:`DecodeError` unless the rule holds."""
    if not holds:
        raise DecodeError(fault)


def ascending(values: Sequence[bytes]) -> bool:
    """Return whether the values are sorted and unique."""
    return list(values) == sorted(set(values))
