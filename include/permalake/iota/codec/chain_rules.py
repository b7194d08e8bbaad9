"""The rules of a single Stardust transaction, in the order in which nodes check them.

Sources: TIP-18, TIP-20, iota.go v3. Used for transactions with more than basic outputs with plain addresses;
:mod:`~permalake.iota.codec.conflict_rules` checks the others in whole batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b

from permalake.iota.codec.chain_transitions import is_allowed
from permalake.iota.codec.encode import ReferenceUnlock, Transaction
from permalake.iota.codec.encode_outputs import NO_ID, Address, Output
from permalake.iota.codec.outputs import ALIAS, ALIAS_ADDRESS, BASIC, ED25519, FOUNDRY, NFT, NFT_ADDRESS
from permalake.iota.codec.reasons import Conflict
from permalake.iota.codec.stardust import MAX_NATIVE_TOKENS

ChainKey = tuple[int, bytes]
_LARGEST = 2**256 - 1
_ADDRESS_OF = {ALIAS: ALIAS_ADDRESS, NFT: NFT_ADDRESS}
_UNLOCK_OF = {ALIAS_ADDRESS: 2, NFT_ADDRESS: 3}
_PLAIN_REFERENCE = 1


@dataclass
class Case:
    """A transaction and what it consumes.

    Attributes:
        spent: The consumed outputs, in the order of the inputs.
        spent_ids: Their ids (34 bytes).
        time: The milestone's timestamp (unix s).
        commits: Whether the inputs commitment is that of ``spent``.
        signed: Whether the signature unlock of input i is by an Ed25519 address, over this essence.
    """

    transaction: Transaction
    transaction_id: bytes
    spent: list[Output]
    spent_ids: list[bytes]
    time: int
    commits: bool
    signed: Callable[[int, bytes], bool]
    before: dict[ChainKey, Output] = field(init=False)
    after: dict[ChainKey, Output] = field(init=False)
    unlocked: dict[Address, tuple[int, set[int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ids = (self.transaction_id + i.to_bytes(2, "little") for i in range(len(self.transaction.outputs)))
        self.before = _chains(self.spent, self.spent_ids)
        self.after = _chains(self.transaction.outputs, ids)


def chain_key(output: Output, output_id: bytes) -> ChainKey:
    """Return kind and id of an alias, foundry or NFT; a zero id stands for BLAKE2b-256(output id)."""
    if output.kind == FOUNDRY and output.address:
        return FOUNDRY, output.address.pack() + output.serial_number.to_bytes(4, "little") + b"\0"
    has_chain_id = output.chain_id != NO_ID
    return output.kind, output.chain_id if has_chain_id else blake2b(output_id, digest_size=32).digest()


def _chains(outputs: Iterable[Output], ids: Iterable[bytes]) -> dict[ChainKey, Output]:
    pairs = zip(outputs, ids, strict=True)
    return {chain_key(output, output_id): output for output, output_id in pairs if output.kind != BASIC}


def first_broken(case: Case) -> Conflict:
    """Return the reason of the first rule that the transaction breaks; NONE if it breaks none."""
    for rule in (_timelocks, _unlocks, _senders, _deposits, _native_tokens, _transitions):
        if broken := rule(case):
            return broken
    return Conflict.NONE


def _timelocks(case: Case) -> Conflict:
    locked = any(case.time < output.timelock for output in case.spent)
    return Conflict.DUST_OR_TIMELOCK if locked else Conflict.NONE


def _unlocks(case: Case) -> Conflict:
    if not case.commits:
        return Conflict.INPUTS_COMMITMENT
    for at, output in enumerate(case.spent):
        if broken := _unlock(case, at, output):
            return broken
        if output.kind in _ADDRESS_OF:
            kind, chain_id = chain_key(output, case.spent_ids[at])
            if kind == NFT or _goes_on(output, case.after.get((kind, chain_id))):
                case.unlocked[Address(_ADDRESS_OF[kind], chain_id)] = at, set()
    return Conflict.NONE


def _goes_on(alias: Output, following: Output | None) -> bool:
    """Return whether an alias is in a state transition: only that unlocks its address."""
    return following is not None and following.state_index == alias.state_index + 1


def _unlock(case: Case, at: int, output: Output) -> Conflict:
    owner = _owner(case, at, output)
    if owner is None:
        return Conflict.CHAIN_TRANSITION
    unlock = case.transaction.unlocks[at]
    if not isinstance(unlock, ReferenceUnlock):
        if owner.kind != ED25519 or owner in case.unlocked:
            return Conflict.INPUT_UNLOCK
        if not case.signed(at, owner.value):
            return Conflict.SIGNATURE
        case.unlocked[owner] = at, set()
        return Conflict.NONE
    where, by = case.unlocked.get(owner, (-1, set()))
    if unlock.kind != _UNLOCK_OF.get(owner.kind, _PLAIN_REFERENCE) or where != unlock.index:
        return Conflict.INPUT_UNLOCK
    by.add(at)
    return Conflict.NONE


def _owner(case: Case, at: int, output: Output) -> Address | None:
    """Return the address that must unlock an input; None for an alias whose state index jumps."""
    if output.kind != ALIAS:
        expired = output.expiration is not None and case.time >= output.expiration[1]
        return output.expiration[0] if expired and output.expiration else output.address
    following = case.after.get(chain_key(output, case.spent_ids[at]))
    if following is None or following.state_index == output.state_index:
        return output.governor
    return output.state_controller if _goes_on(output, following) else None


def _senders(case: Case) -> Conflict:
    senders = (output.sender for output in case.transaction.outputs if output.sender)
    return Conflict.NONE if all(sender in case.unlocked for sender in senders) else Conflict.SENDER


def _deposits(case: Case) -> Conflict:
    outputs = case.transaction.outputs
    if sum(output.amount for output in case.spent) != sum(output.amount for output in outputs):
        return Conflict.SUM
    owed: dict[Address, int] = {}
    for at, output in enumerate(case.spent):
        if output.storage_return:
            address, amount = output.storage_return
            where, by = case.unlocked.get(address, (-1, set()))
            if where != at and at not in by:
                owed[address] = owed.get(address, 0) + amount
    for address, amount in owed.items():
        plain = (output for output in outputs if output.address == address and _is_plain(output))
        if sum(output.amount for output in plain) < amount:
            return Conflict.STORAGE_RETURN
    return Conflict.NONE


def _is_plain(output: Output) -> bool:
    """Return whether an output is a basic output with an address and nothing else."""
    extra = output.native_tokens, output.storage_return, output.timelock, output.expiration
    return output.kind == BASIC and not any((*extra, output.sender, output.metadata, output.tag))


def _native_tokens(case: Case) -> Conflict:
    came, left = token_sums(case.spent), token_sums(case.transaction.outputs)
    too_many = len(came) > MAX_NATIVE_TOKENS or len(came.keys() | left.keys()) > MAX_NATIVE_TOKENS
    too_much = any(total > _LARGEST for total in (*came.values(), *left.values()))
    grown = any(
        amount > came.get(token, 0) for token, amount in left.items() if (FOUNDRY, token) not in case.after
    )
    return Conflict.NATIVE_TOKENS if too_many or too_much or grown else Conflict.NONE


def token_sums(outputs: Iterable[Output]) -> dict[bytes, int]:
    """Return the amount of every native token that the outputs hold."""
    sums: dict[bytes, int] = {}
    for token in (token for output in outputs for token in output.native_tokens):
        sums[token.token_id] = sums.get(token.token_id, 0) + token.amount
    return sums


def _transitions(case: Case) -> Conflict:
    came, left = token_sums(case.spent), token_sums(case.transaction.outputs)

    def steps() -> Iterator[tuple[ChainKey, Output | None, Output | None]]:
        for key, output in case.before.items():
            yield key, output, case.after.get(key)
        for key, output in case.after.items():
            if key not in case.before:
                yield key, None, output

    for key, before, after in steps():
        tokens = (came.get(key[1], 0), left.get(key[1], 0)) if key[0] == FOUNDRY else (0, 0)
        if not is_allowed(
            before,
            after,
            tokens,
            chains=(case.before, case.after),
            outputs=case.transaction.outputs,
            unlocked=case.unlocked,
        ):
            return Conflict.CHAIN_TRANSITION
    return Conflict.NONE
