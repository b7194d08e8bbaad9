"""Why transactions conflict, decided as node software decides it, many transactions at once.

Rules are checked in the order of Hornet's white-flag confirmation and of iota.go's semantic validation (v2
for Chrysalis, v3 for Stardust): a transaction that breaks two rules has the code of the first. Codes 1 to 3
depend on history and belong to :mod:`permalake.iota.cone.conflict_reasons`; here all consumed outputs are
given.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from permalake.arrays.cursor import I64, U8, Mask, blake2b_rows, expand
from permalake.arrays.slices import fixed
from permalake.iota.codec.blocks import Blocks
from permalake.iota.codec.chain_rules import Case, first_broken
from permalake.iota.codec.outputs import BASIC, DUST_ALLOWANCE, ED25519, Addresses, Outputs, Protocol
from permalake.iota.codec.reasons import Conflict
from permalake.iota.codec.signatures import valid_signatures
from permalake.iota.codec.to_records import output_records, transaction_records
from permalake.iota.codec.transactions import REFERENCE, SIGNATURE

MIN_DUST_ALLOWANCE = 1_000_000
# Transactions as records at once: each has up to 256 outputs, created and consumed.
_AT_ONCE = 256


@dataclass
class Spending:
    """Transactions ``rows`` (of ``blocks.transactions``, ascending) with everything that they consume.

    Attributes:
        outputs: The consumed outputs, in any order.
        output_id: Their ids, u8[k, 34].
        consumed: For every input of the blocks' transactions its row in ``outputs``, i64; the values of other
            transactions' inputs are ignored.
        time: The milestone's timestamp (unix s) by transaction, i64.
        signatures: Whether signatures are checked; otherwise they are trusted.
        dust: By transaction (Chrysalis), i64: 1 if it breaks the dust allowance, 0 if not, -1 if that is
            unknown but the only reason left.
    """

    protocol: Protocol
    blocks: Blocks
    rows: I64
    outputs: Outputs
    output_id: U8
    consumed: I64
    time: I64
    signatures: bool = True
    dust: I64 | None = None

    def __post_init__(self) -> None:
        transactions = self.blocks.transactions
        is_spending = np.zeros(len(transactions), bool)
        is_spending[self.rows] = True
        self.inputs = np.flatnonzero(is_spending[transactions.inputs.transaction])
        self.created = np.flatnonzero(is_spending[transactions.outputs.transaction])
        self.of_input = transactions.inputs.transaction[self.inputs]
        self.of_created = transactions.outputs.transaction[self.created]
        self.spent = self.consumed[self.inputs]

    def any_input(self, where: Mask) -> Mask:
        """Return which transactions (of all) have an input for which ``where`` holds."""
        return self._marked(self.of_input[where])

    def any_created(self, where: Mask) -> Mask:
        """Return which transactions (of all) have an output for which ``where`` holds."""
        return self._marked(self.of_created[where])

    def _marked(self, transactions: I64) -> Mask:
        marked = np.zeros(len(self.blocks.transactions), bool)
        marked[transactions] = True
        return marked


def judge(spending: Spending) -> I64:
    """Return the :class:`Conflict` of every transaction of ``spending.rows``: NONE if it breaks no rule."""
    return _stardust(spending) if spending.protocol == "stardust" else _chrysalis(spending)


def unlocker(outputs: Outputs, rows: I64, time: I64) -> Addresses:
    """Return the address that unlocks each output at ``time``: after an expiration, its return address.

    An alias has none: its unlocking address depends on the output that follows it.
    """
    address, back = outputs.address.take(rows), outputs.expiration_return.take(rows)
    expiration = outputs.expiration_time[rows]
    expired = (expiration > 0) & (time >= expiration)
    return Addresses(
        np.where(expired, back.kind, address.kind), np.where(expired[:, None], back.value, address.value)
    )


def touches_dust(spending: Spending) -> Mask:
    """Return which transactions (of all) depend on a dust allowance.

    Those are the ones that consume or create dust, or consume an allowance (iota.go v2). Creating an
    allowance alone cannot break one.
    """
    transactions = spending.blocks.transactions
    kind, amount = spending.outputs.kind[spending.spent], spending.outputs.amount[spending.spent]
    from_input = spending.any_input((amount < MIN_DUST_ALLOWANCE) | (kind == DUST_ALLOWANCE))
    return from_input | spending.any_created(
        transactions.output.amount[spending.created] < MIN_DUST_ALLOWANCE
    )


def unequal(spending: Spending) -> Mask:
    """Return which transactions (of all) have inputs and outputs of different amounts."""
    transactions = spending.blocks.transactions
    left = np.zeros(len(transactions), np.int64)
    np.add.at(left, spending.of_input, spending.outputs.amount[spending.spent])
    np.subtract.at(left, spending.of_created, transactions.output.amount[spending.created])
    unequal_sums: Mask = left != 0
    return unequal_sums


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
        self.checked = spending.signatures
        self.signer = np.zeros((len(rows), 32), np.uint8)
        self.valid = np.ones(len(rows), bool)
        if self.checked:
            start = unlocks.start[rows[signed]] + 2
            data = spending.blocks.data
            self.signer[signed] = blake2b_rows(data, start, np.full(len(signed), 32))
            self.valid[signed] = valid_signatures(spending.blocks, rows[signed])

    def signed_by_owner(self) -> Mask:
        """Return whether the signature that unlocks an input is valid and by the input's owner."""
        if not self.checked:
            return self.valid
        by_owner: Mask = (self.signer[self.at] == self.owner).all(axis=1)
        return by_owner & self.valid[self.at]


def _first_of(transaction: I64, owner: Addresses) -> I64:
    """Return for every input the first input of its transaction with the same owner."""
    parts = (
        transaction.astype("<u4")[:, None].view(np.uint8),
        owner.kind.astype("<i2")[:, None].view(np.uint8),
    )
    code = fixed(np.hstack([*parts, owner.value])).dictionary_encode().indices.to_numpy()
    first: I64 = np.unique(code, return_index=True)[1][code]
    return first


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
    code = np.where(unequal(spending), int(Conflict.SUM), int(Conflict.NONE))
    _put_unlocks(spending, unlocking, code)
    wrong = ~_committed(spending)
    code[wrong] = Conflict.INPUTS_COMMITMENT
    held = spending.outputs
    locked = held.timelock_time[spending.spent] > spending.time[spending.of_input]
    code[spending.any_input(locked)] = Conflict.DUST_OR_TIMELOCK
    special = np.flatnonzero(_is_special(spending, unlocking))
    for some in np.split(special, range(_AT_ONCE, len(special), _AT_ONCE)):
        code[some] = [first_broken(case) for case in _cases(spending, unlocking, some, ~wrong)]
    return code[spending.rows]


def _cases(spending: Spending, unlocking: _Unlocking, rows: I64, commits: Mask) -> Iterator[Case]:
    """Yield some transactions (ascending) to be checked one by one; ``commits`` is by transaction."""
    transactions = spending.blocks.transactions
    begins, ends = (spending.of_input.searchsorted(rows, side) for side in ("left", "right"))
    row, index = expand(ends - begins)
    spent = spending.spent[begins[row] + index]
    outputs = iter(output_records(spending.outputs, spent))
    ids = iter([spending.output_id[row].tobytes() for row in spent.tolist()])
    records = transaction_records(spending.blocks, rows, "stardust")
    places = zip(records, rows.tolist(), begins.tolist(), ends.tolist(), strict=True)
    for record, transaction, begin, end in places:

        def signed(at: int, owner: bytes, begin: int = begin) -> bool:
            row = begin + at
            return bool(unlocking.valid[row]) and (
                not spending.signatures or unlocking.signer[row].tobytes() == owner
            )

        yield Case(
            transaction=record,
            transaction_id=transactions.transaction_id[transaction].tobytes(),
            spent=list(islice(outputs, end - begin)),
            spent_ids=list(islice(ids, end - begin)),
            time=int(spending.time[transaction]),
            commits=bool(commits[transaction]),
            signed=signed,
        )


def _is_special(spending: Spending, unlocking: _Unlocking) -> Mask:
    """Return which transactions (of all) cannot be checked in whole batches.

    They have chains, native tokens, senders, storage returns, or addresses of aliases and NFTs.
    """
    created, spent = spending.blocks.transactions.output, spending.outputs
    made, used = spending.created, spending.spent
    tokens = np.diff(spent.native_token_offset) > 0, np.diff(created.native_token_offset) > 0
    inputs = (spent.kind[used] != BASIC) | tokens[0][used] | (spent.storage_return.kind[used] >= 0)
    inputs |= (unlocking.kind != ED25519) | (unlocking.unlock > REFERENCE)
    outputs = (created.kind[made] != BASIC) | tokens[1][made] | (created.sender.kind[made] >= 0)
    return spending.any_input(inputs) | spending.any_created(outputs)


def _put_unlocks(spending: Spending, unlocking: _Unlocking, code: I64) -> None:
    """Set the code of the first input of each transaction that is not unlocked (plain addresses only)."""
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
    """Return which transactions (of all) commit to what they consume; others count as right.

    The commitment is BLAKE2b-256 over the hashes of the consumed outputs in the order of the inputs (TIP-20).
    """
    held, transactions = spending.outputs, spending.blocks.transactions
    digest = blake2b_rows(held.data, held.start, held.length)
    in_order = np.ascontiguousarray(digest[spending.spent]).reshape(-1)
    begins = np.searchsorted(spending.of_input, spending.rows)
    ends = np.searchsorted(spending.of_input, spending.rows, side="right")
    computed = blake2b_rows(in_order, 32 * begins, 32 * (ends - begins))
    right = np.ones(len(transactions), bool)
    right[spending.rows] = (computed == transactions.inputs_commitment[spending.rows]).all(axis=1)
    return right
