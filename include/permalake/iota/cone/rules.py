"""The rules of a network, and the days that are built, for the cone."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol as Interface

from permalake.iota.codec.milestones import ApplicableKey
from permalake.iota.codec.outputs import Protocol
from permalake.iota.cone.source_records import LOOK_BACK, MilestoneDay


class CoordinatorRange(ApplicableKey, Interface):
    """A coordinator key, the milestones that it signs, and its threshold."""

    @property
    def threshold(self) -> int | None:
        """Number of signatures that a milestone needs."""


@dataclass(frozen=True, slots=True)
class ConeRules:
    """The rules of a network, and the range of days.

    ``source_first`` is the source's first milestone: an absent parent is a solid entry point only within
    ``look_back`` milestones of it, and no cone may reach further back than ``look_back`` milestones. Without
    coordinator ``keys`` a milestone's signatures are checked against its own keys. ``treasuries`` gives, by
    milestone id, what the receipts of earlier days left in the treasury.
    """

    protocol: Protocol
    bech32_hrp: str
    days: tuple[MilestoneDay, ...]
    source_first: int
    keys: tuple[CoordinatorRange, ...] = ()
    threshold: int | None = None
    transaction_signatures: bool = True
    look_back: int = LOOK_BACK
    treasuries: Mapping[bytes, int] = field(default_factory=dict)

    def day(self, milestone: int) -> MilestoneDay:
        """Return the day that a milestone index belongs to: the last one that begins at or before it."""
        begins = [day.first for day in self.days]
        return self.days[max(bisect_right(begins, milestone) - 1, 0)]

    def is_entry_point(self, milestone: int) -> bool:
        """Return whether an absent parent of that milestone's cone lies before the source's beginning."""
        return milestone - self.source_first <= self.look_back

    def threshold_at(self, milestone: int) -> int | None:
        """Return how many signatures a milestone needs: the largest number that an applicable key asks for.

        Keys without a number of their own take the network's.
        """
        thresholds = [key.threshold for key in _applicable(self.keys, milestone) if key.threshold is not None]
        return max(thresholds, default=self.threshold)


def _applicable(keys: Sequence[CoordinatorRange], milestone: int) -> list[CoordinatorRange]:
    return [key for key in keys if key.start <= milestone and (not key.end or milestone <= key.end)]
