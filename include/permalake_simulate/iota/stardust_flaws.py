"""Transactions of a synthetic Stardust tangle that conflict by themselves, one flaw each (TIP-25's codes)."""

from __future__ import annotations

from dataclasses import replace

from permalake.iota.codec.encode_outputs import NativeToken
from permalake_simulate.iota import stardust_chains as chains
from permalake_simulate.iota.epoch_ledger import AMOUNT, NOT_FOUND, SIGNATURE, Draft, owned
from permalake_simulate.iota.stardust_ledger import StardustLedger

TIMELOCK, TOKENS, RETURN, UNLOCK, COMMITMENT, SENDER, CHAIN = 6, 7, 8, 9, 10, 11, 12
_KINDS = (
    NOT_FOUND, AMOUNT, SIGNATURE, TIMELOCK, TIMELOCK, TOKENS, RETURN, RETURN, UNLOCK, COMMITMENT, SENDER,
    CHAIN,
)  # fmt: skip


def flawed(ledger: StardustLedger) -> Draft | None:
    """Return a transaction with one flaw; None where there is no output for it."""
    kind = ledger.rng.choice(_KINDS)
    if kind in (TIMELOCK, RETURN):
        return _condition(ledger, kind)
    if kind == CHAIN:
        return _chain(ledger)
    if kind == UNLOCK:
        return _unlock(ledger)
    return _plain(ledger, kind)


def _plain(ledger: StardustLedger, kind: int) -> Draft | None:
    spends = ledger.spends("plain", 1)
    if not spends:
        return None
    amount, rng = spends[0].coin.output.amount, ledger.rng
    outputs = ledger.shared(amount, 1)
    if kind == NOT_FOUND:
        return ledger.draft([replace(spends[0], coin=ledger.unknown(spends[0].coin))], outputs)
    if kind == COMMITMENT:
        return ledger.draft(spends, outputs, flaw=kind, commitment=rng.randbytes(32))
    if kind == AMOUNT:
        outputs = ledger.shared(amount + rng.randint(1, 99), 1)
    elif kind == TOKENS:
        forged = NativeToken(b"\x08" + rng.randbytes(32) + bytes([1, 0, 0, 0, 0]), 1 + rng.getrandbits(60))
        outputs = [replace(outputs[0], native_tokens=(forged,))]
    elif kind == SENDER:
        outputs = [replace(outputs[0], sender=owned(rng.randbytes(32)))]
    return ledger.draft(spends, outputs, flaw=kind)


def _condition(ledger: StardustLedger, kind: int) -> Draft | None:
    """Return a transaction that breaks a timelock, or does not return a deposit.

    Neither flaw holds for ever, so the transaction is attached once.
    """
    coin = ledger.pick("special")
    if coin is None:
        return None
    output = coin.output
    locked = output.timelock > ledger.time
    owed = output.storage_return is not None and not ledger.is_expired(output)
    if kind == TIMELOCK and locked:
        outputs = ledger.paid([ledger.spend(coin)], 1)
    elif kind == RETURN and owed and not locked:
        outputs = ledger.shared(output.amount, 1)
        if output.storage_return and outputs[0].address == output.storage_return[0]:
            return None
    else:
        return None
    return ledger.draft([ledger.spend(coin)], outputs, flaw=kind, repeatable=False) if outputs else None


def _chain(ledger: StardustLedger) -> Draft | None:
    """Return a transaction that changes the immutable metadata of an NFT."""
    coin = ledger.pick("nft")
    if coin is None:
        return None
    changed = replace(coin.output, chain_id=chains.chain_id(coin), immutable_metadata=b"changed")
    return ledger.draft([ledger.spend(coin)], [changed], flaw=CHAIN)


def _unlock(ledger: StardustLedger) -> Draft | None:
    """Return a transaction with an input that refers to the signature of somebody else."""
    spends = ledger.spends("plain", 2)
    if len(spends) < 2 or spends[0].owner is None or spends[0].owner is spends[1].owner:
        return None
    total = sum(spend.coin.output.amount for spend in spends)
    return ledger.draft(
        [spends[0], replace(spends[1], owner=None, kind=1)], ledger.shared(total, 2), flaw=UNLOCK
    )
