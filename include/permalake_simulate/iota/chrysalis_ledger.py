"""Transactions of a synthetic Chrysalis tangle (TIP-7): transfers, dust and its allowance, flaws."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from permalake.iota.codec.encode_outputs import Output
from permalake.iota.codec.outputs import DUST_ALLOWANCE, SINGLE
from permalake_simulate.iota.amounts import LEAST, split
from permalake_simulate.iota.epoch_ledger import (
    AMOUNT,
    NOT_FOUND,
    SIGNATURE,
    Draft,
    SimulatedCoin,
    SimulatedLedger,
    Spend,
    owned,
)
from permalake_simulate.iota.owners import Owners
from permalake_simulate.iota.tag_choice import SimulatedTags
from permalake_simulate.iota.wallets import KeyPair, key_pair

DUST = 6
# One dust output for every 100,000 tokens of allowance, at most 100 for an address.
_ALLOWANCE, _MOST_DUST = 10_000_000, 100


@dataclass
class ChrysalisLedger(SimulatedLedger):
    """A ledger of signature-locked outputs.

    Dust goes to an address of the epoch's own, which gets its allowance first and is never spent from.
    """

    owners: Owners = field(kw_only=True)
    tagger: SimulatedTags = field(kw_only=True)
    dusty: KeyPair = field(init=False)
    allowed: bool = False
    dust: int = 0

    def __post_init__(self) -> None:
        self.dusty = key_pair(self.world.seed, "dust", self.rng.getrandbits(48))

    def pool_of(self, coin: SimulatedCoin) -> str | None:
        """Return "plain" for a coin of a wallet that is no dust and no allowance."""
        kept = coin.output.address is None or coin.output.address.value not in self.owners
        return None if kept or coin.output.amount < LEAST or coin.output.kind == DUST_ALLOWANCE else "plain"

    def valid(self) -> Draft | None:
        """Return a transfer, an allowance or dust."""
        spends = self._spends(1 + int(3 * self.rng.random() ** 3))
        if not spends:
            return None
        total = sum(spend.coin.output.amount for spend in spends)
        roll = self.rng.random()
        if roll < 0.02 and not self.allowed and total > _ALLOWANCE + LEAST:
            allowance = Output(DUST_ALLOWANCE, _ALLOWANCE, owned(self.dusty.address))
            draft = self.draft(spends, [allowance, *self._shared(total - _ALLOWANCE, 1)])
            draft.note = self._allow
            return draft
        if roll < 0.1 and self.allowed and self.dust < _MOST_DUST and total > 2 * LEAST:
            amount = self.rng.randint(1, LEAST - 1)
            self.dust += 1
            speck = Output(SINGLE, amount, owned(self.dusty.address))
            return self.draft(spends, [speck, *self._shared(total - amount, 1)])
        payload = self.tagger.tagged(self.rng) if self.rng.random() < 0.2 else None
        return self.draft(spends, self._shared(total, 1 + self.rng.randrange(4)), payload=payload)

    def _allow(self) -> None:
        self.allowed = True

    def again(self, coin: SimulatedCoin) -> Draft:
        """Return another transfer of just this coin."""
        return self.draft([self._spend(coin)], self._shared(coin.output.amount, 2))

    def flawed(self) -> Draft | None:
        """Return a transaction with an unknown input, wrong amount, bad signature or unallowed dust."""
        spends = self._spends(1)
        if not spends:
            return None
        coin, spend = spends[0].coin, spends[0]
        amount = coin.output.amount
        kind = self.rng.choice((NOT_FOUND, AMOUNT, SIGNATURE, DUST))
        if kind == NOT_FOUND:
            return self.draft([replace(spend, coin=self.unknown(coin))], self._shared(amount, 1))
        if kind == AMOUNT:
            return self.draft([spend], self._shared(amount + self.rng.randint(1, 99), 1), flaw=kind)
        if kind == DUST and amount > 2 * LEAST:
            nobody = key_pair(self.world.seed, "no allowance", self.rng.getrandbits(48))
            speck = Output(SINGLE, self.rng.randint(1, LEAST - 1), owned(nobody.address))
            return self.draft([spend], [speck, *self._shared(amount - speck.amount, 1)], flaw=kind)
        return self.draft([spend], self._shared(amount, 1), flaw=SIGNATURE)

    def _spends(self, count: int) -> list[Spend]:
        coins = (self.pick("plain") for _ in range(count))
        return [self._spend(coin) for coin in coins if coin]

    def _spend(self, coin: SimulatedCoin) -> Spend:
        return Spend(coin, self.owners.of(coin.output.address))

    def _shared(self, total: int, count: int) -> list[Output]:
        """Return outputs to different wallets, none of them dust, ``total`` in all."""
        receivers = {}
        for _ in range(max(1, min(count, total // LEAST))):
            number = self.wallets.pick(self.rng)
            receivers[number] = self.owners.known(number)
        amounts = split(self.rng, total, len(receivers))
        return [
            Output(SINGLE, amount, owned(pair.address))
            for amount, pair in zip(amounts, receivers.values(), strict=True)
        ]
