"""Guardians, bridges, emitters and tokens of a synthetic Wormhole world, all from its seed.

Chain ids are real ones, so that addresses take their chains' forms; everything on these chains is made up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property, lru_cache

from coincurve import PrivateKey

from permalake.errors import ConfigError
from permalake.wormhole.codec.guardians import quorum
from permalake.wormhole.codec.vaa import GENESIS
from permalake_simulate.seeds import digest
from permalake_simulate.wormhole.encode_vaa import guardian_address

FIRST_SET = 1_000
SOLANA = 1
CHAINS = (2, 4, 5, 1, 6, 23, 24, 30, 10, 14)
_NFT_CHAINS = (2, 5)
_TOKENS_PER_CHAIN = 8
# Of a hundred messages, how many each bridge of CHAINS sends; the rest are other contracts'.
_SHARES = (26, 16, 12, 12, 6, 6, 5, 4, 2, 1)
_NFT_SHARE, _OTHERS = 2, 6
# Which of the others belong to applications.
_APPLICATIONS = {2: "relayer", 3: "circle", 4: "ntt", 5: "mayan_swift"}
_CYCLE = 100
_PART = 5_000
# Real sequences exceed 2**63; so do those of one emitter here.
_FAR = 2**63 + 11

TOKEN_BRIDGE, NFT_BRIDGE, OTHER = "token", "nft", "other"


@dataclass(frozen=True)
class Emitter:
    """An emitter; ``first`` is the sequence of its first message, ``layout`` that of an application's."""

    kind: str
    chain: int
    address: bytes
    first: int = 0
    layout: str = ""


@dataclass(frozen=True)
class SyntheticToken:
    """A made-up token.

    ``attested``: its own chain's bridge attests symbol, name and decimals; ``listed``: the token list has
    them; ``price`` in USD, 0 where there is no quote.
    """

    chain: int
    address: bytes
    symbol: str
    name: str
    decimals: int
    attested: bool
    listed: bool
    denied: bool
    price: float


@dataclass(frozen=True)
class Part:
    """A range of messages: ``count`` from number ``first`` of the world on.

    They are those from ``begin`` on of ``day``, which has ``of_day`` messages.
    """

    number: int
    day: date
    first: int
    count: int
    begin: int
    of_day: int


@dataclass(frozen=True)
class WormholeWorld:
    """Parameters of a synthetic world of VAAs; equal parameters make equal bytes."""

    messages: int
    days: int
    start: date
    seed: int
    guardians: int = 19
    bad_share: float = 0.02
    copy_share: float = 0.01
    addresses: int = 2_000
    observed_share: float = 0.01

    def __post_init__(self) -> None:
        if not 1 <= self.guardians <= 255:
            raise ConfigError(f"guardians: {self.guardians} is not 1 to 255")
        for name in ("bad_share", "copy_share", "observed_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name}: {getattr(self, name)} is no share; choose 0 to 1")
        if self.days < 1 or self.messages < self.days:
            raise ConfigError(f"messages: {self.messages} do not fill {self.days} days")
        if self.start < GENESIS:
            raise ConfigError(f"start: {self.start} lies before Wormhole's first day, {GENESIS}")

    @property
    def quorum(self) -> int:
        """Signatures that a VAA needs."""
        return quorum(self.guardians)

    def guardian_set(self, day: date) -> int:
        """Return the guardian set of a day; it changes halfway."""
        return FIRST_SET + ((day - self.start).days >= (self.days + 1) // 2)

    @cached_property
    def guardian_sets(self) -> dict[int, list[bytes]]:
        """Addresses by set."""
        return {
            number: [
                guardian_address(digest(self.seed, "guardian", number, g)) for g in range(self.guardians)
            ]
            for number in (FIRST_SET, FIRST_SET + 1)
        }

    @cached_property
    def emitters(self) -> tuple[Emitter, ...]:
        """All emitters, bridges first."""
        bridges = [Emitter(TOKEN_BRIDGE, chain, self.contract("token bridge", chain)) for chain in CHAINS]
        bridges += [Emitter(NFT_BRIDGE, chain, self.contract("nft bridge", chain)) for chain in _NFT_CHAINS]
        others = [
            Emitter(
                OTHER,
                CHAINS[number % 3],
                self.contract("other", number),
                _FAR if number == 1 else 0,
                _APPLICATIONS.get(number, ""),
            )
            for number in range(_OTHERS)
        ]
        return (*bridges, *others)

    @cached_property
    def _turns(self) -> tuple[tuple[int, int, int], ...]:
        """For each place of a cycle: the emitter, how often it was its turn, how often it is in a cycle."""
        counts = [*_SHARES, *(_NFT_SHARE for _ in _NFT_CHAINS)]
        left = _CYCLE - sum(counts)
        counts += [left // _OTHERS + (number < left % _OTHERS) for number in range(_OTHERS)]
        places = sorted(
            ((turn + 0.5) / count, emitter, turn)
            for emitter, count in enumerate(counts)
            for turn in range(count)
        )
        return tuple((emitter, turn, counts[emitter]) for _, emitter, turn in places)

    def sender(self, number: int) -> tuple[Emitter, int]:
        """Return the emitter of message ``number``, and its sequence without the emitter's first: no gaps."""
        emitter, turn, often = self._turns[number % _CYCLE]
        return self.emitters[emitter], number // _CYCLE * often + turn

    def contract(self, label: str, number: int) -> bytes:
        """Return a 32-byte address on chain ``number``, padded on the left unless it is Solana's."""
        made = digest(self.seed, label, number)
        return made if number == SOLANA else bytes(12) + made[12:]

    def holder(self, chain: int, number: int) -> bytes:
        """Return a receiver on a chain."""
        made = digest(self.seed, "holder", chain, number)
        return made if chain == SOLANA else bytes(12) + made[12:]

    @cached_property
    def tokens(self) -> dict[int, tuple[SyntheticToken, ...]]:
        """Tokens by chain. Every chain has a SYNUSDC; the last token of each chain is a fake one."""
        return {chain: tuple(self._token(chain, n) for n in range(_TOKENS_PER_CHAIN)) for chain in CHAINS}

    def _token(self, chain: int, number: int) -> SyntheticToken:
        chance = digest(self.seed, "token", chain, number)
        made = digest(self.seed, "token address", chain, number)
        fake = number == _TOKENS_PER_CHAIN - 1
        symbol = "SYNUSDC" if fake or not number else f"SYN{chain}T{number}"
        decimals = 6 if not number else chance[0] % 19
        return SyntheticToken(
            chain=chain,
            address=made if chain == SOLANA else bytes(12) + made[12:],
            symbol=symbol,
            name=f"Synthetic {'Fake ' if fake else ''}{symbol}",
            decimals=decimals,
            attested=number % 4 != 2,
            listed=number % 4 == 2 or not number,
            denied=fake and chance[1] % 2 == 0,
            price=0.0 if fake or number == 5 else 1.0 if not number else round(10 ** (chance[2] / 64 - 1), 6),
        )

    def parts(self) -> Iterator[Part]:
        """Yield the parts that tasks make, in order; each lies within a day."""
        number = first = 0
        for day in range(self.days):
            at = self.start + timedelta(day)
            of_day = self.messages // self.days + (day < self.messages % self.days)
            for begin in range(0, of_day, _PART):
                count = min(_PART, of_day - begin)
                yield Part(number, at, first, count, begin, of_day)
                number, first = number + 1, first + count

    @staticmethod
    def midnight(day: date) -> int:
        """Return the unix seconds at which a day begins."""
        return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())


@lru_cache(maxsize=1024)
def guardian_key(seed: int, guardian_set: int, number: int) -> PrivateKey:
    """Return a guardian's key; it follows from the seed and signs for nothing real."""
    return PrivateKey(digest(seed, "guardian", guardian_set, number))
