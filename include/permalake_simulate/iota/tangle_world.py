"""The parameters of a synthetic tangle, and its division into days, milestones and epochs.

An *epoch* is a run of milestones of one day that is made on its own: a pure function of the world, its number
and the few ids that lead into it (:mod:`permalake_simulate.iota.spine`). Spark spreads epochs over its tasks,
and a task holds one epoch in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from hashlib import blake2b
from itertools import accumulate
from math import cos, pi
from random import Random
from typing import Literal

from permalake.errors import ConfigError
from permalake.iota.codec.chrysalis import SUPPLY as CHRYSALIS_SUPPLY
from permalake.iota.codec.outputs import Protocol

STARDUST_SUPPLY = 1_813_620_509_061_365
# A tenth of what Chrysalis will ever hold is yet to be migrated.
_TREASURY_SHARE = 10
_EPOCH_MESSAGES = 50_000
_ALLOTMENT = 10**12
_SECONDS = 86_400
_BUSIEST = 15 * 3_600
# How busy the days from Monday to Sunday are.
_WEEKDAYS = (1.0, 1.08, 1.12, 1.06, 0.96, 0.6, 0.52)


Layout = Literal["archive_rest", "chronicle"]
# Number of the milestone whose receipt brings all funds into a world written as Chronicle logs.
OPENING = -1


@dataclass(frozen=True)
class Epoch:
    """Milestones of ``day`` from ``first`` on (counted from 0 over the whole world).

    ``sizes`` are their cones' messages, those that carry milestones included.
    """

    number: int
    day: date
    first: int
    times: tuple[int, ...]
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class IotaWorld:
    """Parameters of a synthetic tangle; equal parameters make equal bytes.

    ``empty_days`` counts days from 0. Shares are of messages (transactions) and of transactions (conflicts,
    reattachments). ``layout`` is the source's format: Chronicle logs lack consumed outputs, so a world in
    that layout begins with a milestone more, whose receipt mints all funds. With ``rhythm``, days are busier
    than nights and working days than weekends. With ``one_ledger``, an epoch goes on with the outputs of the
    one before, as a network does; then epochs are made one after the other.
    """

    protocol: Protocol
    messages: int
    days: int
    start: date
    seed: int
    bech32_hrp: str
    milestones_per_day: int = 0
    first_milestone: int = 1_000
    transaction_share: float = 0.1
    conflict_share: float = 0.04
    reattachment_share: float = 0.03
    wallets: int = 2_000
    tags: int = 1_000
    receipt_every: int = 50
    empty_days: tuple[int, ...] = ()
    layout: Layout = "archive_rest"
    rhythm: bool = False
    one_ledger: bool = False

    def __post_init__(self) -> None:
        for name in ("transaction_share", "conflict_share", "reattachment_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name}: {getattr(self, name)} is no share; choose 0 to 1")
        for name in ("days", "wallets", "tags", "receipt_every", "first_milestone"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}: {getattr(self, name)} is too few; choose at least 1")
        if not self.filled_days:
            raise ConfigError("empty_days: every day is empty; leave at least one of them out")
        if self.messages < 4 * self.milestone_count:
            raise ConfigError(
                f"messages: {self.messages} do not fill {self.milestone_count} milestones; ask for at least "
                f"{4 * self.milestone_count} messages or for fewer milestones a day"
            )
        if self.layout == "chronicle" and (self.protocol != "chrysalis" or self.first_milestone < 2):
            raise ConfigError("format: chronicle is for chrysalis, from milestone 2 on; choose archive_rest")
        if not 0 < self.per_day <= _SECONDS:
            raise ConfigError(f"milestones_per_day: {self.per_day} is not 1 to {_SECONDS}")

    @cached_property
    def filled_days(self) -> tuple[date, ...]:
        """The days that have milestones."""
        return tuple(
            self.start + timedelta(day) for day in range(self.days) if day not in set(self.empty_days)
        )

    @property
    def per_day(self) -> int:
        """Milestones a day: as set, else one in ten seconds where there are messages enough."""
        return self.milestones_per_day or max(1, min(8_640, self.messages // (20 * len(self.filled_days))))

    @property
    def milestone_count(self) -> int:
        """Milestones of all days."""
        return self.per_day * len(self.filled_days)

    @property
    def network(self) -> str:
        """Name of the network, as in the protocol parameters; it says that it is synthetic."""
        return f"synthetic-{self.bech32_hrp}"

    @property
    def network_id(self) -> int:
        """First 8 bytes of the name's BLAKE2b-256, little-endian, as in the protocols."""
        return int.from_bytes(blake2b(self.network.encode(), digest_size=32).digest()[:8], "little")

    @property
    def funds(self) -> WorldFunds:
        """How its tokens are distributed when it begins."""
        return WorldFunds(self)

    @property
    def epoch_length(self) -> int:
        """Milestones in an epoch."""
        return max(1, min(self.per_day, _EPOCH_MESSAGES * self.milestone_count // self.messages))

    @property
    def epoch_count(self) -> int:
        """Epochs of all days."""
        return len(self.filled_days) * -(-self.per_day // self.epoch_length)

    def index(self, milestone: int) -> int:
        """Return the index of the ``milestone``-th milestone."""
        return self.first_milestone + milestone

    def has_receipt(self, milestone: int) -> bool:
        """Return whether that milestone carries a receipt."""
        if milestone == OPENING:
            return True
        return self.protocol == "chrysalis" and milestone % self.receipt_every == self.receipt_every // 2

    def epochs(self) -> Iterator[Epoch]:
        """Yield all epochs in order."""
        sizes, number, milestone = self._sizes(), 0, 0
        for day in self.filled_days:
            midnight = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
            for begin in range(0, self.per_day, self.epoch_length):
                within = range(begin, min(begin + self.epoch_length, self.per_day))
                times = tuple(midnight + self._second(i) for i in within)
                yield Epoch(number, day, milestone, times, tuple(next(sizes) for _ in within))
                number, milestone = number + 1, milestone + len(within)

    def _second(self, place: int) -> int:
        """Return the second of the day of its ``place``-th milestone; an opening comes before."""
        late = _SECONDS // 2 if self.layout == "chronicle" else 0
        return (place * _SECONDS + late) // self.per_day

    def _sizes(self) -> Iterator[int]:
        """Return the messages of every milestone: uneven, at least 4 each, ``messages`` in all."""
        uneven = Random(f"{self.seed}/sizes")  # noqa: S311 (reproducible, not secret)
        if self.rhythm:
            yield from self._rhythmic_sizes(uneven)
            return
        left, weight = self.messages - 4 * self.milestone_count, float(self.milestone_count)
        for remaining in range(self.milestone_count, 0, -1):
            share = min(uneven.gammavariate(4, 0.25), weight) / weight if remaining > 1 else 1.0
            extra = int(left * share)
            yield 4 + extra
            left, weight = left - extra, max(weight - share * weight, 1e-9) if remaining > 1 else 0.0

    def _rhythmic_sizes(self, uneven: Random) -> Iterator[int]:
        weights = [
            of_day * _hour_weight(self._second(place)) * uneven.gammavariate(25, 1 / 25)
            for day in self.filled_days
            for of_day in [_WEEKDAYS[day.weekday()] * uneven.gammavariate(200, 1 / 200)]
            for place in range(self.per_day)
        ]
        scale = (self.messages - 4 * len(weights)) / sum(weights)
        before = 0
        for reached in accumulate(weights):
            until = round(reached * scale)
            yield 4 + until - before
            before = until


def _hour_weight(second: int) -> float:
    """Return how busy a time of the day is: most in the afternoon, least in the small hours."""
    return 1 + 0.6 * cos(2 * pi * (second - _BUSIEST) / _SECONDS)


class WorldFunds:
    """Base tokens of a world when it begins."""

    def __init__(self, world: IotaWorld) -> None:
        stardust, opened = world.protocol == "stardust", world.layout == "chronicle"
        self.supply = STARDUST_SUPPLY if stardust else CHRYSALIS_SUPPLY
        """All tokens, those in the treasury included."""
        unmigrated = 0 if stardust else self.supply // _TREASURY_SHARE
        self.treasury = self.supply if opened else unmigrated
        """Tokens not yet migrated (Chrysalis)."""
        funded = 1 if world.one_ledger else world.epoch_count
        self.allotment = min(_ALLOTMENT, self.supply // 2 // (funded + 1))
        """Tokens for each epoch that is funded."""
        self.bank = self.allotment * (funded + 1)
        """Tokens that fund the epochs; all others never move."""
