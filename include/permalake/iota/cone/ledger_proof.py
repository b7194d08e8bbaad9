"""Proof of what a batch's included transactions did to the ledger.

Which transactions are included is the source's claim, proven by the milestone's applied Merkle root. Here
the consumed outputs are matched with the inputs, and each transaction is judged by all rules of its protocol:
what says that the source's consumed outputs or bytes are not right (sum, inputs commitment, signature) breaks
the day; anything else is a disagreement with the root, and reported.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from permalake.arrays.slices import fixed
from permalake.contracts.reason_codes import ConeReason
from permalake.iota.codec.conflict_rules import Spending, judge
from permalake.iota.codec.decode_outputs import decode_outputs
from permalake.iota.codec.milestones import Milestone
from permalake.iota.codec.outputs import ALIAS, Addresses, Outputs
from permalake.iota.codec.reasons import Conflict, described
from permalake.iota.cone.batch import MilestoneBatch, Problem
from permalake.iota.cone.milestone_proof import Cone
from permalake.iota.cone.rules import ConeRules
from permalake.iota.cone.source_records import InclusionState

OUTPUT_ID = 34
"""Bytes of an output id."""
# Rules that only a wrong source can break, since the root says that the transaction is included.
_BREAKS: dict[Conflict, tuple[ConeReason, str]] = {
    Conflict.SUM: ("amount_mismatch", "its inputs and outputs differ in amount"),
    Conflict.SIGNATURE: ("transaction_signature", "a signature is not valid, or not its input's owner's"),
    Conflict.INPUTS_COMMITMENT: (
        "inputs_commitment",
        "its consumed outputs are not those that it commits to",
    ),
}


@dataclass(slots=True)
class SpentOutputs:
    """Consumed outputs of a batch.

    ``included`` marks the transactions (rows of :class:`Transactions`) whose effects count; ``consumed``
    gives for each input the row of ``outputs`` that it consumed, -1 when its transaction is not included or
    the source lacks the output; ``owner`` unlocked the output.
    """

    included: np.ndarray
    consumed: np.ndarray
    outputs: Outputs
    output_id: np.ndarray
    owner: Addresses


def check_ledger(batch: MilestoneBatch, cones: list[Cone], rules: ConeRules) -> SpentOutputs:
    """Match, prove and value the consumed outputs of the cones; what does not hold becomes a problem."""
    decoded = batch.decoded
    transactions, inputs = decoded.transactions, decoded.transactions.inputs
    ordered = np.zeros(len(batch.blocks), bool)
    for cone in cones:
        ordered[cone.order] = True
    included = (ordered & (batch.blocks.state == InclusionState.INCLUDED))[transactions.block]
    milestone = batch.blocks.milestone[transactions.block][inputs.transaction]
    rows = _distinct(batch)
    claims = batch.consumed
    outputs = decode_outputs(claims.raw.take(pa.array(rows)), batch.protocol)
    ids = _ids(claims.id.take(pa.array(rows)))
    consumed = _find(_keys(inputs.output_id, milestone), _keys(ids, claims.milestone[rows]))
    consumed[~included[inputs.transaction]] = -1
    ledger = SpentOutputs(
        included, consumed, outputs, ids, _owners(outputs, _times(cones, claims.milestone[rows]))
    )
    checks = _Checks(batch, ledger, claims.milestone[rows], {cone.milestone.index for cone in cones})
    checks.matching(rows)
    checks.transactions(cones, rules.transaction_signatures)
    checks.changes(cones)
    return ledger


def _ids(column: pa.Array) -> np.ndarray:
    """Output ids as u8[n, 34]; one of another length becomes zeros and matches nothing."""
    right = pc.equal(pc.binary_length(column), OUTPUT_ID)
    padded = pc.if_else(pc.fill_null(right, False), column, pa.scalar(bytes(OUTPUT_ID), column.type))
    joined = pa.concat_arrays([padded]).cast(pa.binary(OUTPUT_ID))
    return np.frombuffer(joined.buffers()[1], np.uint8)[: len(joined) * OUTPUT_ID].reshape(-1, OUTPUT_ID)


def _keys(ids: np.ndarray, milestone: np.ndarray) -> pa.Array:
    return fixed(np.hstack([ids, milestone.astype("<u4")[:, None].view(np.uint8)]))


def _find(ids: pa.Array, keys: pa.Array) -> np.ndarray:
    places = pc.index_in(ids, value_set=keys) if len(keys) else pa.nulls(len(ids), pa.int32())
    rows: np.ndarray = pc.fill_null(places, -1).to_numpy(zero_copy_only=False).astype(np.int64).copy()
    return rows


def _distinct(batch: MilestoneBatch) -> np.ndarray:
    """Rows of the consumed-output records without repetitions; two that differ are a problem."""
    claims = batch.consumed
    if not len(claims):
        return np.zeros(0, np.int64)
    keys = _keys(_ids(claims.id), claims.milestone).dictionary_encode()
    code = keys.indices.to_numpy(zero_copy_only=False)
    first = np.unique(code, return_index=True)[1]
    for row in np.setdiff1d(np.arange(len(code)), first).tolist():
        if claims.raw[row] != claims.raw[int(first[code[row]])]:
            detail = f"the source holds two different consumed outputs {claims.id[row].as_py().hex()}"
            origin, raw = str(claims.origin[row]), claims.raw[row].as_py()
            batch.problems.append(
                Problem(int(claims.milestone[row]), "consumed_conflict", detail, origin, raw)
            )
    return first


def _times(cones: list[Cone], milestone: np.ndarray) -> np.ndarray:
    time = {cone.milestone.index: cone.milestone.timestamp for cone in cones}
    index, place = np.unique(milestone, return_inverse=True)
    return np.array([time.get(i, 0) for i in index.tolist()], np.int64)[place]


def owners(outputs: Outputs) -> Addresses:
    """Who owns an output when it is created: alias: its state controller; else its address."""
    is_alias = outputs.kind == ALIAS
    address, controller = outputs.address, outputs.state_controller
    return Addresses(
        np.where(is_alias, controller.kind, address.kind),
        np.where(is_alias[:, None], controller.value, address.value),
    )


def _owners(outputs: Outputs, time: np.ndarray) -> Addresses:
    """Who unlocks an output at ``time`` (unix s): once an expiration has passed, its return address."""
    created, back = owners(outputs), outputs.expiration_return
    expired = (outputs.expiration_time > 0) & (time >= outputs.expiration_time)
    return Addresses(
        np.where(expired, back.kind, created.kind), np.where(expired[:, None], back.value, created.value)
    )


class _Checks:
    def __init__(self, batch: MilestoneBatch, ledger: SpentOutputs, milestone: np.ndarray, proven: set[int]):
        self.batch, self.ledger, self.milestone, self.proven = batch, ledger, milestone, proven
        self.transactions_of = batch.decoded.transactions

    def fail(self, transaction: int, reason: ConeReason, detail: str, *, breaks: bool = True) -> None:
        row = int(self.transactions_of.block[transaction])
        name = self.transactions_of.transaction_id[transaction].tobytes().hex()
        milestone, origin = int(self.batch.blocks.milestone[row]), str(self.batch.blocks.origin[row])
        raw = self.batch.blocks.raw[row].as_py()
        detail = f"transaction {name}: {detail}"
        self.batch.problems.append(Problem(milestone, reason, detail, origin, raw, breaks))

    def matching(self, rows: np.ndarray) -> None:
        """Consumed outputs are those of the inputs of included transactions, no more and no fewer."""
        ledger, inputs, claims = self.ledger, self.transactions_of.inputs, self.batch.consumed
        is_missing = ledger.included[inputs.transaction] & (ledger.consumed < 0)
        for transaction in np.unique(inputs.transaction[is_missing]).tolist():
            lacking = inputs.output_id[is_missing & (inputs.transaction == transaction)]
            detail = f"consumed output {lacking[0].tobytes().hex()} is not in the source"
            self.fail(transaction, "consumed_missing", detail)
        used = np.zeros(len(rows), bool)
        used[ledger.consumed[ledger.consumed >= 0]] = True
        for row in np.flatnonzero(~used | (ledger.outputs.error != 0)).tolist():
            at, claim = int(self.milestone[row]), int(rows[row])
            named = (claims.id[claim].as_py() or b"").hex()
            origin, raw = str(claims.origin[claim]), claims.raw[claim].as_py()
            if ledger.outputs.error[row]:
                self.batch.problems.append(Problem(at, "malformed", f"consumed output {named}", origin, raw))
            elif at in self.proven:
                detail = f"no included transaction consumes the output {named}"
                self.batch.problems.append(Problem(at, "consumed_unexpected", detail, origin, raw))

    def transactions(self, cones: list[Cone], signatures: bool) -> None:
        """Every rule of the protocol, for transactions whose inputs are all known."""
        ledger, parts = self.ledger, self.transactions_of
        count = np.bincount(parts.inputs.transaction, minlength=len(ledger.included))
        fine = ledger.consumed >= 0
        fine[fine] = ledger.outputs.error[ledger.consumed[fine]] == 0
        proven_count = np.bincount(parts.inputs.transaction[fine], minlength=len(ledger.included))
        spending = Spending(
            protocol=self.batch.protocol,
            blocks=self.batch.decoded,
            rows=np.flatnonzero(ledger.included & (count == proven_count)),
            outputs=ledger.outputs,
            output_id=ledger.output_id,
            consumed=ledger.consumed,
            time=_times(cones, self.batch.blocks.milestone[parts.block]),
            signatures=signatures,
        )
        code = judge(spending)
        wrong = np.flatnonzero(code)
        for transaction, reason in zip(spending.rows[wrong].tolist(), code[wrong].tolist(), strict=True):
            if reason in _BREAKS:
                self.fail(transaction, *_BREAKS[reason])
            else:
                detail = f"it is included, but recomputed as conflicting: {described(reason)}"
                self.fail(transaction, "conflict_disagreement", detail, breaks=False)

    def changes(self, cones: list[Cone]) -> None:
        """Return the source's own list of created and consumed ids, where it has one."""
        parts, blocks = self.transactions_of, self.batch.blocks.milestone
        created = self.ledger.included[parts.outputs.transaction]
        owner = parts.outputs.transaction[created]
        outputs = output_ids(parts.transaction_id[owner], parts.outputs.idx[created])
        spent = self.ledger.included[parts.inputs.transaction]
        inputs, spender = parts.inputs.output_id[spent], parts.inputs.transaction[spent]
        # Records are sorted by milestone, and so are their transactions.
        milestone = blocks[parts.block]
        listed = self.batch.changes
        for cone in cones:
            index = cone.milestone.index
            bounds = milestone.searchsorted([index, index + 1])
            for row in np.flatnonzero(listed.milestone == index).tolist():
                migrated = b"".join(migrated_ids(cone.milestone))
                ours = {
                    "created": _set(_between(outputs, owner, bounds) + migrated),
                    "consumed": _set(_between(inputs, spender, bounds)),
                }
                theirs = {
                    "created": _set(listed.raw[row].as_py()),
                    "consumed": _set(listed.link[row].as_py()),
                }
                for what in ("created", "consumed"):
                    if differing := sorted(ours[what] ^ theirs[what]):
                        detail = f"{what} outputs differ from the source's list, first {differing[0].hex()}"
                        origin = str(listed.origin[row])
                        self.batch.problems.append(Problem(index, "utxo_changes", detail, origin))


def _between(ids: np.ndarray, transaction: np.ndarray, bounds: np.ndarray) -> bytes:
    """Return the ids of a range of transactions; ``transaction`` (ascending) gives each id's."""
    begin, end = transaction.searchsorted(bounds).tolist()
    return bytes(ids[begin:end].tobytes())


def migrated_ids(milestone: Milestone) -> list[bytes]:
    """Ids of the outputs that a milestone's receipt creates: milestone id || u16 LE index."""
    funds = len(milestone.receipt.funds) if milestone.receipt else 0
    return [milestone.milestone_id + i.to_bytes(2, "little") for i in range(funds)]


def _set(joined: bytes | None) -> set[bytes]:
    joined = joined or b""
    return {joined[at : at + OUTPUT_ID] for at in range(0, len(joined), OUTPUT_ID)}


def output_ids(transaction_id: np.ndarray, idx: np.ndarray) -> np.ndarray:
    """Output ids u8[k, 34]: transaction id || u16 LE index."""
    return np.hstack([transaction_id, idx.astype("<u2")[:, None].view(np.uint8)])
