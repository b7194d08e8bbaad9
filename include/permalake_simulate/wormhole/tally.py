"""What the days of a synthetic Wormhole world must add up to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

_COUNTS = (
    *("published", "token_transfers", "attestations", "nft_transfers", "documents"),
    *("application_transfers", "deliveries", "redeemed", "in_flight", "untold", "observations"),
)


@dataclass
class Tally:
    """Totals of a day: published messages, payload rows by table, quarantined VAAs by reason.

    ``redeemed``, ``in_flight`` and ``untold`` add up to its transfers of tokens and NFTs.
    ``application_transfers`` are those of applications' own emitters, neither bridged nor delivered.
    """

    published: int = 0
    token_transfers: int = 0
    attestations: int = 0
    nft_transfers: int = 0
    application_transfers: int = 0
    deliveries: int = 0
    documents: int = 0
    redeemed: int = 0
    in_flight: int = 0
    untold: int = 0
    observations: int = 0
    quarantined: dict[str, int] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        """Add another part of the day."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.quarantined = dict(sorted((Counter(self.quarantined) + Counter(other.quarantined)).items()))
