"""Why a transaction conflicts, decided as the node software decides it, many transactions at once.

Rules are looked at in the order of Hornet's white-flag confirmation and of iota.go's semantic validation (v2
for Chrysalis, v3 for Stardust): a transaction that breaks two has the code of the first. What history decides
(codes 1 to 3) is :mod:`permalake.iota.cone.conflict_reasons`' part; here all consumed outputs are given.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from permalake.arrays.cursor import I64, U8, Mask, blake2b_rows
from permalake.arrays.slices import fixed
from permalake.iota.codec.blocks import Blocks
from permalake.iota.codec.chain_rules import Case, first_broken
from permalake.iota.codec.outputs import BASIC, DUST_ALLOWANCE, ED25519, Addresses, Outputs, Protocol
from permalake.iota.codec.reasons import Conflict
from permalake.iota.codec.signatures import signed_rightly
from permalake.iota.codec.to_records import output_record, transaction_record
from permalake.iota.codec.transactions import REFERENCE, SIGNATURE

MIN_DUST_ALLOWANCE = 1_000_000


@dataclass
class Spending:
    """Transactions ``rows`` (of ``blocks.transactions``, ascending) with all that they consume.

    ``outputs``: consumed outputs in any order, ``output_id`` u8[k, 34] their ids; ``consumed`` i64: for every
    input of the blocks' transactions its row there (of other transactions' inputs: anything). ``time`` i64:
    the milestone's timestamp (unix s) by transaction. Without ``signatures`` these are believed; ``exact`` as
    in :func:`~permalake.iota.codec.signatures.signed_rightly`.

    ``dust`` i64 by transaction (Chrysalis): 1 when it breaks the dust allowance, 0 when not, -1 when that
    cannot be told but is the only reason left.
    """

    protocol: Protocol
    blocks: Blocks
    rows: I64
    outputs: Outputs
    output_id: U8
    consumed: I64
    time: I64
    signatures: bool = True
    exact: bool = True
    dust: I64 | None = None

    def __post_init__(self) -> None:
        transactions = self.blocks.transactions
        wanted = np.zeros(len(transactions), bool)
        wanted[self.rows] = True
        self.inputs = np.flatnonzero(wanted[transactions.inputs.transaction])
        self.created = np.flatnonzero(wanted[transactions.outputs.transaction])
        self.of_input = transactions.inputs.transaction[self.inputs]
        self.of_created = transactions.outputs.transaction[self.created]
        self.spent = self.consumed[self.inputs]

    def any_input(self, where: Mask) -> Mask:
        """Transactions (of all) with an input of which it holds."""
        return self._marked(self.of_input[where])

    def any_created(self, where: Mask) -> Mask:
        """Transactions (of all) with an output of which it holds."""
        return self._marked(self.of_created[where])

    def _marked(self, transactions: I64) -> Mask:
        marked = np.zeros(len(self.blocks.transactions), bool)
        marked[transactions] = True
        return marked


def judge(spending: Spending) -> I64:
    """The :class:`Conflict` of every transaction of ``spending.rows``: NONE when it breaks no rule."""
    return _stardust(spending) if spending.protocol == "stardust" else _chrysalis(spending)


def unlocker(outputs: Outputs, rows: I64, time: I64) -> Addresses:
    """Who unlocks each of some outputs at ``time``: once an expiration has passed, its return address. An
    alias has none here: who unlocks it depends on what becomes of it."""
    own, back = outputs.address.take(rows), outputs.expiration_return.take(rows)
    expiration = outputs.expiration_time[rows]
    expired = (expiration > 0) & (time >= expiration)
    return Addresses(
        np.where(expired, back.kind, own.kind), np.where(expired[:, None], back.value, own.value)
    )


def touches_dust(spending: Spending) -> Mask:
    """Transactions (of all) whose validity depends on a dust allowance: those that consume or create dust or
    an allowance (iota.go v2; creating an allowance alone can break nothing that held before)."""
    transactions = spending.blocks.transactions
    kind, amount = spending.outputs.kind[spending.spent], spending.outputs.amount[spending.spent]
    from_input = spending.any_input((amount < MIN_DUST_ALLOWANCE) | (kind == DUST_ALLOWANCE))
    return from_input | spending.any_created(
        transactions.output.amount[spending.created] < MIN_DUST_ALLOWANCE
    )


def unequal(spending: Spending) -> Mask:
    """Transactions (of all) whose inputs and outputs differ in amount."""
    transactions = spending.blocks.transactions
    left = np.zeros(len(transactions), np.int64)
    np.add.at(left, spending.of_input, spending.outputs.amount[spending.spent])
    np.subtract.at(left, spending.of_created, transactions.output.amount[spending.created])
    return left != 0


class _Unlocking:
    """Inputs of some transactions (those of ``spending.inputs``), their owners and signatures."""

    def __init__(self, spending: Spending):
        transactions = spending.blocks.transactions
        unlocks, rows = transactions.unlocks, spending.inputs
        owner = unlocker(spending.outputs, spending.spent, spending.time[spending.of_input])
        self.kind, self.owner, self.unlock = owner.kind, owner.value, unlocks.kind[rows]
        # The row (here) of the signature that unlocks: an input's own or the one that its reference names.
        idx = transactions.inputs.idx[rows]
        here = np.arange(len(rows))
        self.at = np.where(self.unlock == SIGNATURE, here, here - idx + unlocks.reference[rows])
        self.first = _first_of(spending.of_input, owner)
        signed = np.flatnonzero(self.unlock == SIGNATURE)
        self.looked_at = spending.signatures
        self.signer = np.zeros((len(rows), 32), np.uint8)
        self.valid = np.ones(len(rows), bool)
        if self.looked_at:
            start = unlocks.start[rows[signed]] + 2
            data = spending.blocks.data
            self.signer[signed] = blake2b_rows(data, start, np.full(len(signed), 32))
            self.valid[signed] = signed_rightly(spending.blocks, rows[signed], exact=spending.exact)

    def signed_by_owner(self) -> Mask:
        """Whether the signature that unlocks an input is valid, and by the key of the input's owner."""
        if not self.looked_at:
            return self.valid
        return (self.signer[self.at] == self.owner).all(axis=1) & self.valid[self.at]


def _first_of(transaction: I64, owner: Addresses) -> I64:
    """For every input the first one of its transaction with the same owner."""
    parts = (
        transaction.astype("<u4")[:, None].view(np.uint8),
        owner.kind.astype("<i2")[:, None].view(np.uint8),
    )
    code = fixed(np.hstack([*parts, owner.value])).dictionary_encode().indices.to_numpy()
    return np.unique(code, return_index=True)[1][code]


def _chrysalis(spending: Spending) -> I64:
    unlocking = _Unlocking(spending)
    here = np.arange(len(spending.inputs))
    one_signature = unlocking.at == unlocking.at[unlocking.first]
    unsigned = spending.any_input((unlocking.first == here) & ~unlocking.signed_by_owner())
    code = np.where(unsigned, int(Conflict.SIGNATURE), int(Conflict.NONE))
    if spending.dust is not None:
        code[spending.dust == 1] = Conflict.DUST_OR_TIMELOCK
        code[(spending.dust < 0) & ~unsigned] = Conflict.DUST_OR_TIMELOCK
        code[(spending.dust < 0) & unsigned] = Conflict.UNKNOWN
    code[unequal(spending)] = Conflict.SUM
    code[spending.any_input(~one_signature)] = Conflict.SEMANTICS
    return code[spending.rows]


def _stardust(spending: Spending) -> I64:
    unlocking = _Unlocking(spending)
    transactions = spending.blocks.transactions
    code = np.where(unequal(spending), int(Conflict.SUM), int(Conflict.NONE))
    _put_unlocks(spending, unlocking, code)
    wrong = ~_committed(spending)
    code[wrong] = Conflict.INPUTS_COMMITMENT
    held = spending.outputs
    locked = held.timelock_time[spending.spent] > spending.time[spending.of_input]
    code[spending.any_input(locked)] = Conflict.DUST_OR_TIMELOCK
    for transaction in np.flatnonzero(_is_special(spending, unlocking)).tolist():
        begin, end = np.searchsorted(spending.of_input, [transaction, transaction + 1]).tolist()

        def signed(at: int, owner: bytes, begin: int = begin) -> bool:
            row = begin + at
            return bool(unlocking.valid[row]) and (
                not spending.signatures or unlocking.signer[row].tobytes() == owner
            )

        spent = spending.spent[begin:end].tolist()
        case = Case(
            transaction=transaction_record(spending.blocks, transaction, "stardust"),
            transaction_id=transactions.transaction_id[transaction].tobytes(),
            spent=[output_record(held, row) for row in spent],
            spent_ids=[spending.output_id[row].tobytes() for row in spent],
            time=int(spending.time[transaction]),
            commits=not wrong[transaction],
            signed=signed,
        )
        code[transaction] = first_broken(case)
    return code[spending.rows]


def _is_special(spending: Spending, unlocking: _Unlocking) -> Mask:
    """Transactions (of all) that need more than whole batches tell: chains, native tokens, senders, storage
    returns, addresses of aliases and NFTs."""
    created, spent = spending.blocks.transactions.output, spending.outputs
    made, used = spending.created, spending.spent
    tokens = np.diff(spent.native_token_offset) > 0, np.diff(created.native_token_offset) > 0
    inputs = (spent.kind[used] != BASIC) | tokens[0][used] | (spent.storage_return.kind[used] >= 0)
    inputs |= (unlocking.kind != ED25519) | (unlocking.unlock > REFERENCE)
    outputs = (created.kind[made] != BASIC) | tokens[1][made] | (created.sender.kind[made] >= 0)
    return spending.any_input(inputs) | spending.any_created(outputs)


def _put_unlocks(spending: Spending, unlocking: _Unlocking, code: I64) -> None:
    """What the first input of a transaction that is not unlocked says (plain addresses only)."""
    here = np.arange(len(spending.inputs))
    is_signature = unlocking.unlock == SIGNATURE
    repeated = is_signature & (unlocking.first != here)
    # Only a signature of the same owner unlocks a reference's input.
    stray = ~is_signature & (unlocking.owner[unlocking.at] != unlocking.owner).any(axis=1)
    unsigned = is_signature & ~repeated & ~unlocking.signed_by_owner()
    wrong = np.flatnonzero(repeated | stray | unsigned)[::-1]  # backwards, so that the first one counts
    reason = np.where(unsigned[wrong], int(Conflict.SIGNATURE), int(Conflict.INPUT_UNLOCK))
    code[spending.of_input[wrong]] = reason


def _committed(spending: Spending) -> Mask:
    """Transactions (of all; others count as right) that commit to what they consume: BLAKE2b-256 over the
    hashes of the consumed outputs in the order of the inputs (TIP-20)."""
    held, transactions = spending.outputs, spending.blocks.transactions
    digest = blake2b_rows(held.data, held.start, held.length)
    in_order = np.ascontiguousarray(digest[spending.spent]).reshape(-1)
    begins = np.searchsorted(spending.of_input, spending.rows)
    ends = np.searchsorted(spending.of_input, spending.rows, side="right")
    computed = blake2b_rows(in_order, 32 * begins, 32 * (ends - begins))
    right = np.ones(len(transactions), bool)
    right[spending.rows] = (computed == transactions.inputs_commitment[spending.rows]).all(axis=1)
    return right
