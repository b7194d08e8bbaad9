"""The ledger of a synthetic epoch: what is unspent, and which transactions of a cone are included.

Transactions are drafted first and checked when their cone's white-flag order is known, as a node does
(TIP-2). An input that was spent before or in this milestone, or is unknown, is a conflict; so is the flaw
that a draft was made with on purpose. Codes are those of TIP-13 and TIP-25.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from permalake.iota.codec.encode import (
    ReferenceUnlock,
    SignatureUnlock,
    TaggedData,
    Transaction,
    pack_essence,
    pack_transaction,
)
from permalake.iota.codec.encode_outputs import Address, Output, pack_output
from permalake.iota.codec.outputs import ED25519
from permalake_simulate.iota.spine import hashed
from permalake_simulate.iota.tangle_world import IotaWorld
from permalake_simulate.iota.wallets import KeyPair, Wallets

SPENT, SPENT_IN_MILESTONE, NOT_FOUND, AMOUNT, SIGNATURE = 1, 2, 3, 4, 5
_REMEMBERED = 50
_TRIES = 6


@dataclass(frozen=True, slots=True)
class SimulatedCoin:
    """An output with its id (34 bytes) and wire bytes."""

    output_id: bytes
    output: Output
    raw: bytes


@dataclass(frozen=True, slots=True)
class Spend:
    """An input: the key that unlocks the coin, or the input behind which it stands.

    ``kind`` is as in :class:`ReferenceUnlock`.
    """

    coin: SimulatedCoin
    owner: KeyPair | None
    kind: int = 0
    behind: int = 0


@dataclass(slots=True)
class Draft:
    """A transaction to be attached.

    ``flaw`` is the conflict reason that it has whatever its inputs are; ``needs`` are drafts of the same cone
    whose outputs it spends.
    """

    payload: bytes
    transaction_id: bytes
    inputs: tuple[bytes, ...]
    coins: tuple[SimulatedCoin, ...]
    flaw: int = 0
    repeatable: bool = True
    needs: tuple[int, ...] = ()
    note: Callable[[], None] | None = None


@dataclass(slots=True)
class Booked:
    """Where an output was created: message id, milestone index and time."""

    block_id: bytes
    index: int
    time: int


@dataclass
class SimulatedLedger(ABC):
    """The state between the milestones of an epoch; a subclass makes the transactions of a protocol."""

    world: IotaWorld
    wallets: Wallets
    rng: Random
    unspent: dict[bytes, SimulatedCoin] = field(default_factory=dict)
    booked: dict[bytes, Booked] = field(default_factory=dict)
    spent: dict[bytes, int] = field(default_factory=dict)
    gone: dict[bytes, SimulatedCoin] = field(default_factory=dict)  # consumed in the last milestone
    pools: dict[str, list[bytes]] = field(default_factory=dict)
    recent: deque[Draft] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    index: int = 0
    time: int = 0
    drafts: list[Draft] = field(default_factory=list)
    taken: set[bytes] = field(default_factory=set)
    fresh: dict[bytes, tuple[int, SimulatedCoin]] = field(default_factory=dict)

    # What a protocol's ledger says itself.
    @abstractmethod
    def pool_of(self, coin: SimulatedCoin) -> str | None:
        """Return the pool that a new coin belongs to; None when it is never spent."""

    @abstractmethod
    def valid(self) -> Draft | None:
        """Return a transaction that will be included, unless another takes its inputs."""

    @abstractmethod
    def flawed(self) -> Draft | None:
        """Return a transaction with a flaw of its own."""

    @abstractmethod
    def again(self, coin: SimulatedCoin) -> Draft:
        """Return another transaction that spends just this coin."""

    def fill(self, index: int, time: int, count: int, first: Draft | None = None) -> list[Draft]:
        """Draft up to ``count`` transactions for the milestone's cone, ``first`` among them."""
        self.index, self.time = index, time
        self.drafts, self.taken, self.fresh, self.gone = [], set(), {}, {}
        if first:
            self._add(first, at_once=True)
        for _ in range(count - len(self.drafts)):
            draft = self._next()
            if draft:
                self._add(draft, at_once=self.rng.random() < 0.1)
        return self.drafts

    def _next(self) -> Draft | None:
        roll = self.rng.random()
        if roll < self.world.reattachment_share:
            return self._reattached()
        roll -= self.world.reattachment_share
        if roll < self.world.conflict_share / 2:
            return self._double_spend()
        return self.flawed() if roll < self.world.conflict_share else self.valid()

    def _add(self, draft: Draft, at_once: bool) -> None:
        number = len(self.drafts)
        self.drafts.append(draft)
        self.taken.update(draft.inputs)
        if draft.repeatable:
            self.recent.append(draft)
        if at_once and not draft.flaw and all(map(self.coin, draft.inputs)):
            for coin in draft.coins:
                if coin.output_id not in self.fresh:
                    self.fresh[coin.output_id] = number, coin
                    self._pool(coin)

    def _pool(self, coin: SimulatedCoin) -> None:
        name = self.pool_of(coin)
        if name:
            self.pools.setdefault(name, []).append(coin.output_id)

    def _reattached(self) -> Draft | None:
        if not self.recent:
            return None
        return replace(self.rng.choice(self.recent), needs=())

    def _double_spend(self) -> Draft | None:
        rivals = [draft for draft in self.drafts[-20:] if not draft.flaw and len(draft.inputs) < 3]
        for rival in self.rng.sample(rivals, len(rivals)):
            coin = self.coin(rival.inputs[0])
            if coin and self.pool_of(coin) == "plain":
                return self.again(coin)
        return None

    def coin(self, output_id: bytes) -> SimulatedCoin | None:
        """Return an output that can still be spent, or that a draft of this cone creates."""
        found = self.unspent.get(output_id)
        return found or (self.fresh[output_id][1] if output_id in self.fresh else None)

    def pick(self, pool: str) -> SimulatedCoin | None:
        """Return a coin of the pool that no draft of this cone spends."""
        ids = self.pools.get(pool, [])
        for _ in range(_TRIES):
            if not ids:
                return None
            at = self.rng.randrange(len(ids))
            coin = self.coin(ids[at])
            if coin is None:
                ids[at] = ids[-1]
                ids.pop()
            elif coin.output_id not in self.taken:
                self.taken.add(coin.output_id)
                return coin
        return None

    def draft(
        self,
        spends: Sequence[Spend],
        outputs: Sequence[Output],
        *,
        flaw: int = 0,
        payload: TaggedData | None = None,
        commitment: bytes | None = None,
        repeatable: bool = True,
    ) -> Draft:
        """Pack and sign a transaction. A ``flaw`` of 5 spoils a signature."""
        if self.world.protocol == "chrysalis":
            spends = sorted(spends, key=lambda spend: spend.coin.output_id)
            outputs = sorted(outputs, key=pack_output)
        raws = [pack_output(output) for output in outputs]
        commits = hashed(b"".join(hashed(spend.coin.raw) for spend in spends))
        transaction = Transaction(
            inputs=tuple(
                (spend.coin.output_id[:32], int.from_bytes(spend.coin.output_id[32:], "little"))
                for spend in spends
            ),
            outputs=tuple(outputs),
            payload=payload,
            network_id=self.world.network_id,
            inputs_commitment=commitment or commits,
        )
        essence = hashed(pack_essence(transaction, self.world.protocol))
        signed = replace(transaction, unlocks=tuple(_unlocks(spends, essence, flaw == SIGNATURE)))
        packed = pack_transaction(signed, self.world.protocol)
        transaction_id = hashed(packed)
        inputs = tuple(spend.coin.output_id for spend in spends)
        return Draft(
            packed,
            transaction_id,
            inputs,
            tuple(
                SimulatedCoin(transaction_id + at.to_bytes(2, "little"), output, raw)
                for at, (output, raw) in enumerate(zip(outputs, raws, strict=True))
            ),
            flaw,
            repeatable,
            tuple({self.fresh[spent][0] for spent in inputs if spent in self.fresh}),
        )

    def unknown(self, like: SimulatedCoin) -> SimulatedCoin:
        """Return a coin that never existed."""
        return replace(like, output_id=self.rng.randbytes(32) + bytes(2))

    def settle(self, ordered: Sequence[Draft], blocks: Sequence[bytes]) -> list[int]:
        """Apply drafts in white-flag order and return their conflict reasons, 0 for the included ones.

        ``blocks`` are the ids of the messages that carry them.
        """
        reasons = []
        for draft, block_id in zip(ordered, blocks, strict=True):
            reason = self._judge(draft)
            reasons.append(reason)
            if not reason:
                self._apply(draft, block_id)
        return reasons

    def _judge(self, draft: Draft) -> int:
        for spent in draft.inputs:
            if spent not in self.unspent:
                return self._lost(spent)
        return draft.flaw

    def _lost(self, spent: bytes) -> int:
        if spent not in self.spent:
            return NOT_FOUND
        return SPENT_IN_MILESTONE if self.spent[spent] == self.index else SPENT

    def _apply(self, draft: Draft, block_id: bytes) -> None:
        for spent in draft.inputs:
            self.gone[spent] = self.unspent.pop(spent)
            self.spent[spent] = self.index
        for coin in draft.coins:
            self.unspent[coin.output_id] = coin
            self.booked[coin.output_id] = Booked(block_id, self.index, self.time)
            if coin.output_id not in self.fresh:
                self._pool(coin)
        if draft.note:
            draft.note()


def _unlocks(
    spends: Sequence[Spend], essence: bytes, spoilt: bool
) -> list[SignatureUnlock | ReferenceUnlock]:
    """Return a signature for each key; further inputs of its owner refer to the first."""
    unlocks: list[SignatureUnlock | ReferenceUnlock] = []
    first: dict[bytes, int] = {}
    for at, spend in enumerate(spends):
        if spend.owner is None:
            unlocks.append(ReferenceUnlock(spend.kind, spend.behind))
        elif spend.owner.address in first:
            unlocks.append(ReferenceUnlock(1, first[spend.owner.address]))
        else:
            first[spend.owner.address] = at
            signature = spend.owner.sign(essence)
            if spoilt and not at:
                signature = signature[:-40] + bytes([signature[-40] ^ 1]) + signature[-39:]
            unlocks.append(SignatureUnlock(spend.owner.public, signature))
    return unlocks


def owned(address: bytes) -> Address:
    """Return an Ed25519 address."""
    return Address(ED25519, address)
