"""The ledger of a synthetic Stardust epoch (TIP-18, TIP-20) and its transfers, with every unlock condition.

What else happens in it is given by :mod:`permalake_simulate.iota.stardust_transactions`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from permalake.iota.codec.encode_outputs import NativeToken, Output
from permalake.iota.codec.outputs import ALIAS, BASIC, FOUNDRY, NFT
from permalake_simulate.iota.amounts import LEAST, split
from permalake_simulate.iota.epoch_ledger import Draft, SimulatedCoin, SimulatedLedger, Spend, owned
from permalake_simulate.iota.owners import Owners
from permalake_simulate.iota.tag_choice import SimulatedTags
from permalake_simulate.iota.wallets import KeyPair

_SPECIAL_SHARE = 0.15
_MOST_TOKENS = 8
Maker: TypeAlias = "Callable[[StardustLedger], Draft | None]"


@dataclass
class StardustLedger(SimulatedLedger):
    """A ledger of basic, alias, foundry and NFT outputs. Owners are Ed25519 addresses, a foundry's its alias.

    ``lives`` are (share, maker) of valid transactions that are no plain transfers, ``flaw`` makes invalid
    ones. ``alias_at``: alias id -> id of its current output. ``minted``: (alias id, foundry output, output
    with all its tokens) of foundries whose tokens have not moved yet.
    """

    owners: Owners = field(kw_only=True)
    tagger: SimulatedTags = field(kw_only=True)
    lives: Sequence[tuple[float, Maker]] = field(kw_only=True)
    flaw: Maker = field(kw_only=True)
    alias_at: dict[bytes, bytes] = field(default_factory=dict)
    minted: list[tuple[bytes, bytes, bytes]] = field(default_factory=list)

    def pool_of(self, coin: SimulatedCoin) -> str | None:
        """Return the pool by kind of output: plain, special, tokens, alias or nft."""
        output = coin.output
        if output.kind in (ALIAS, NFT):
            return "alias" if output.kind == ALIAS else "nft"
        if output.kind == FOUNDRY or output.address is None or output.address.value not in self.owners:
            return None
        if output.native_tokens:
            return "tokens"
        special = output.storage_return or output.timelock or output.expiration
        return "special" if special else "plain"

    def valid(self) -> Draft | None:
        """Return a transaction of a life, or a transfer."""
        roll = self.rng.random()
        for share, live in self.lives:
            if roll < share:
                return live(self) or self.transfer()
            roll -= share
        return self.transfer()

    def flawed(self) -> Draft | None:
        """Return a transaction with a flaw of its own."""
        return self.flaw(self)

    def again(self, coin: SimulatedCoin) -> Draft:
        """Return another transfer of just this coin."""
        return self.draft([self.spend(coin)], self.shared(coin.output.amount, 2))

    def transfer(self) -> Draft | None:
        """Return a transfer of basic outputs; native tokens go to the first new output."""
        spends = self.spends("plain", 1 + int(3 * self.rng.random() ** 3) + self._swept())
        if self.rng.random() < 0.3:
            spends += self.ripe()
        if self.rng.random() < 0.1:
            spends += self.spends("tokens", 1)
        if not spends:
            return None
        payload = self.tagger.tagged(self.rng) if self.rng.random() < 0.2 else None
        outputs = self.paid(spends, 1 + self.rng.randrange(4))
        return self.draft(spends, outputs, payload=payload) if outputs else None

    def _swept(self) -> int:
        """Return how many more outputs a transfer spends, so that a long-lived ledger does not crumble."""
        is_full = self.world.one_ledger and len(self.pools.get("plain", ())) > 2 * self.world.wallets
        return 2 if is_full else 0

    def paid(self, spends: Sequence[Spend], count: int) -> list[Output]:
        """Return outputs for what ``spends`` hold: deposits returned, native tokens kept together."""
        returned = self._returns(spends)
        total = sum(spend.coin.output.amount for spend in spends) - sum(output.amount for output in returned)
        tokens: Counter[bytes] = Counter()
        for spend in spends:
            tokens.update({token.token_id: token.amount for token in spend.coin.output.native_tokens})
        if total < LEAST or len(tokens) > _MOST_TOKENS:
            return []
        held = tuple(NativeToken(token, amount) for token, amount in sorted(tokens.items()))
        first, *others = split(self.rng, total, max(1, min(count, total // LEAST)))
        outputs = [Output(BASIC, first, owned(self.somebody().address), native_tokens=held)]
        return [*outputs, *(self._sent(spends, amount) for amount in others), *returned]

    def _sent(self, spends: Sequence[Spend], amount: int) -> Output:
        """Return a basic output to somebody, with conditions and features now and then."""
        rng, receiver = self.rng, owned(self.somebody().address)
        sender = next((spend.owner for spend in spends if spend.owner), None)
        if sender is None or rng.random() > _SPECIAL_SHARE:
            return Output(BASIC, amount, receiver)
        me = owned(sender.address)
        later = self.time + rng.randint(60, 7_200)
        returned = (me, min(amount // 2, LEAST // 2)) if rng.random() < 0.4 else None
        return Output(
            BASIC,
            amount,
            receiver,
            storage_return=returned,
            timelock=later if rng.random() < 0.3 else 0,
            expiration=(me, later + rng.randint(0, 3_600)) if rng.random() < 0.4 else None,
            sender=me if rng.random() < 0.5 else None,
            metadata=rng.randbytes(rng.randint(1, 60)) if rng.random() < 0.3 else b"",
            tag=b"synthetic" if rng.random() < 0.3 else b"",
        )

    def _returns(self, spends: Sequence[Spend]) -> list[Output]:
        due: Counter[bytes] = Counter()
        for spend in spends:
            output = spend.coin.output
            if output.storage_return and not self.is_expired(output):
                due[output.storage_return[0].value] += output.storage_return[1]
        return [Output(BASIC, amount, owned(address)) for address, amount in sorted(due.items())]

    def ripe(self) -> list[Spend]:
        """Return an output with conditions that can be spent now, if there is one."""
        coin = self.pick("special")
        return [self.spend(coin)] if coin and coin.output.timelock <= self.time else []

    def is_expired(self, output: Output) -> bool:
        """Return whether the output belongs to its return address by now."""
        return output.expiration is not None and self.time >= output.expiration[1]

    def spends(self, pool: str, count: int) -> list[Spend]:
        """Return up to ``count`` inputs of a pool."""
        coins = (self.pick(pool) for _ in range(count))
        return [self.spend(coin) for coin in coins if coin]

    def spend(self, coin: SimulatedCoin) -> Spend:
        """Return the coin as an input of whoever may unlock it now."""
        output = coin.output
        back = output.expiration[0] if output.expiration and self.is_expired(output) else None
        return Spend(coin, self.owners.of(back or output.address))

    def shared(self, total: int, count: int) -> list[Output]:
        """Return plain outputs to somebody, ``total`` in all."""
        amounts = split(self.rng, total, max(1, min(count, total // LEAST)))
        return [Output(BASIC, amount, owned(self.somebody().address)) for amount in amounts]

    def somebody(self) -> KeyPair:
        """Return a wallet; busy ones are more likely."""
        return self.owners.known(self.wallets.pick(self.rng))
