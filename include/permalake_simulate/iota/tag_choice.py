"""Tags of a synthetic tangle: few are used a lot, many hardly ever, some are odd."""

from __future__ import annotations

from random import Random

from permalake.iota.codec.encode import TaggedData
from permalake.iota.codec.outputs import Protocol

_WORDS = (b"SYNTHETIC", b"spammer", b"sensor", b"oracle", b"nft mint", "Grüße".encode(), b"\x00\x01\xff")
_MOST_DATA = 160
_LONGEST = 64


class SimulatedTags:
    """A maker of tagged data."""

    def __init__(self, protocol: Protocol, count: int):
        self._least = 0 if protocol == "stardust" else 1
        self._count = count

    def tagged(self, rng: Random) -> TaggedData:
        """Return tag and data.

        A tag's chance is about one over its rank; one in a hundred is empty or as long as allowed.
        """
        rank = int(self._count ** rng.random()) - 1
        odd = rng.random()
        if odd < 0.005:
            return TaggedData(bytes(self._least), b"")
        if odd < 0.01:
            return TaggedData(b"%64d" % rank, rng.randbytes(_LONGEST))
        tag = _WORDS[rank] if rank < len(_WORDS) else b"tag %d" % rank
        return TaggedData(tag, rng.randbytes(int(_MOST_DATA * rng.random())))
