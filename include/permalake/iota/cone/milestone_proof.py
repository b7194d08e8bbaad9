"""Proof of the milestones of a batch: signatures, links, white-flag order and Merkle roots."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import compress, islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from permalake.contracts.reason_codes import ConeReason
from permalake.iota.codec import blocks as payload
from permalake.iota.codec.blocks import Blocks
from permalake.iota.codec.chrysalis import SUPPLY
from permalake.iota.codec.faults import DecodeError
from permalake.iota.codec.merkle import hashed_leaves, root_of_hashes
from permalake.iota.codec.milestones import Milestone, decode_milestone, verify_signatures
from permalake.iota.codec.outputs import Protocol
from permalake.iota.cone.batch import ConeState, MilestoneBatch, Problem
from permalake.iota.cone.rules import ConeRules
from permalake.iota.cone.source_records import STEP_BACK, InclusionState, utc_date
from permalake.iota.cone.white_flag import white_flag_order

_LAST_TIME = 2**32 - 1


@dataclass(slots=True)
class Cone:
    """A milestone and the block rows that it references, in white-flag order.

    On Chrysalis its own message comes last. ``roots`` are the rows of the milestone's parents, -1 where the
    batch has none. ``fine`` until a check fails.
    """

    milestone: Milestone
    raw: bytes
    date: date
    order: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    roots: list[int] = field(default_factory=list)
    message_row: int = -1
    fine: bool = True


class _Prover:
    def __init__(self, batch: MilestoneBatch, rules: ConeRules, state: ConeState):
        self.batch, self.rules, self.state = batch, rules, state
        decoded, milestone = batch.decoded, batch.blocks.milestone
        child = np.repeat(np.arange(len(milestone)), np.diff(decoded.parent_offset))
        here = batch.edge >= 0
        reach = np.full(len(batch.edge), np.iinfo(np.int64).max)
        reach[here] = milestone[child[here]] - milestone[batch.edge[here]]
        self.child = child
        absent = np.flatnonzero((reach < 0) | (reach > rules.look_back))
        self.absent = _by(milestone[child[absent]], absent)
        self.edges = np.where(reach == 0, batch.edge, -1).tolist()
        self.first_edge = decoded.parent_offset.tolist()
        self.member = bytearray(len(milestone))
        self.members = np.frombuffer(self.member, np.uint8) if len(milestone) else np.zeros(0, np.uint8)

    def fail(self, cone: Cone, reason: ConeReason, detail: str, row: int = -1) -> None:
        origin = self.batch.blocks.origin[row].as_py() if row >= 0 else ""
        raw = self.batch.blocks.raw[row].as_py() if row >= 0 else None
        self.batch.problems.append(Problem(cone.milestone.index, reason, detail, origin or "", raw))
        cone.fine = False

    def spenders(self, milestone: int) -> list[bytes]:
        """Transactions that the source names as having consumed something at that milestone."""
        consumed = self.batch.consumed
        rows = np.flatnonzero(consumed.milestone == milestone)
        ids: list[bytes] = pc.unique(consumed.link.take(pa.array(rows))).to_pylist()
        return ids


def prove(batch: MilestoneBatch, rules: ConeRules, state: ConeState) -> list[Cone]:
    """Return the cones of the batch in order; what does not hold is in ``batch.problems``.

    Context milestones are only remembered in ``state``.
    """
    prover = _Prover(batch, rules, state)
    _report_malformed(prover)
    sound = np.flatnonzero(batch.sound)
    rows_by_milestone = _by(batch.blocks.milestone[sound], sound)
    candidates, invalid = _milestones(prover)
    _find_roots(batch, [cone for cone, _, context in candidates.values() if not context])
    cones = []
    for index in sorted(rows_by_milestone.keys() | candidates.keys() | invalid):
        rows = rows_by_milestone.get(index, np.zeros(0, np.int64))
        candidate = candidates.get(index)
        if index in invalid:
            # Its day is refused already; the next day's first milestone has nothing to be linked with.
            state.last = (index, None)
        elif candidate is None:
            _orphans(prover, index, rows)
        else:
            cone, claimed, context = candidate
            if context:
                _remember_treasury(prover, cone)
            else:
                _check_milestone(prover, cone, claimed)
                _check_cone(prover, cone, rows, claimed)
                cones.append(cone)
            state.last = (index, cone.milestone.milestone_id)
    for index in sorted(rows_by_milestone)[-rules.look_back :]:
        state.remember(index, [batch.decoded.block_id[row].tobytes() for row in rows_by_milestone[index]])
    return cones


def _by(milestone: np.ndarray, values: np.ndarray) -> dict[int, np.ndarray]:
    """Values (in milestone order) by milestone."""
    index, begins = np.unique(milestone, return_index=True)
    return dict(zip(index.tolist(), np.split(values, begins[1:]), strict=True)) if len(values) else {}


def _find_roots(batch: MilestoneBatch, cones: list[Cone]) -> None:
    parents = [cone.milestone.parents for cone in cones]
    ids = pa.array([parent for parent_ids in parents for parent in parent_ids], pa.binary(32))
    rows = iter(batch.rows_of_ids(ids).tolist())
    for cone, parent_ids in zip(cones, parents, strict=True):
        cone.roots = list(islice(rows, len(parent_ids)))


def _report_malformed(prover: _Prover) -> None:
    lines = prover.batch.malformed
    for row in range(len(lines)):
        origin, raw = str(lines.origin[row]), lines.raw[row].as_py()
        why = (lines.link[row].as_py() or b"").decode(errors="replace")
        detail = f"line is no record: {why}" if why else "line is no record"
        problem = Problem(int(lines.milestone[row]), "malformed", detail, origin, raw, breaks=False)
        prover.batch.problems.append(problem)


def _milestones(prover: _Prover) -> tuple[dict[int, tuple[Cone, int, bool]], set[int]]:
    """Return the decoded milestones by index, and the indexes of which there is no valid payload.

    A milestone comes with the row of its claim and whether it is only context. What is wrong with a payload
    breaks its day, unless the source holds a valid one of the same index too.
    """
    claims, rules, carried = prover.batch.milestones, prover.rules, _carried(prover.batch.decoded)
    milestones: dict[int, tuple[Cone, int, bool]] = {}
    faulty: list[tuple[int, bool, Problem]] = []
    for row in range(len(claims)):
        index, raw, origin = int(claims.milestone[row]), claims.raw[row].as_py(), str(claims.origin[row])
        context = bool(claims.context[row])
        try:
            milestone = carried.get(raw) or decode_milestone(raw, rules.protocol)
        except DecodeError as error:
            problem = Problem(index, "malformed", f"milestone payload: {error}", origin, raw)
            faulty.append((index, context, problem))
            continue
        if wrong := _payload_problem(milestone, index, rules.protocol):
            faulty.append((index, context, Problem(index, *wrong, origin, raw)))
        elif index not in milestones:
            milestones[index] = Cone(milestone, raw, rules.day(index).date), row, context
        elif milestones[index][0].raw != raw and not context:
            first = milestones[index][0]
            other = Cone(milestone, raw, first.date)
            if _is_of_its_day(other, rules.protocol) and not _is_of_its_day(first, rules.protocol):
                milestones[index] = other, row, context
            # One of another day is no rival, whatever its index.
            rivals = _is_of_its_day(other, rules.protocol) == _is_of_its_day(first, rules.protocol)
            detail = "the source holds two different payloads of it"
            problem = Problem(index, "milestone_conflict", detail, origin, raw, breaks=rivals)
            prover.batch.problems.append(problem)
            milestones[index][0].fine = not rivals
    for index, context, problem in faulty:
        if not context:
            prover.batch.problems.append(replace(problem, breaks=index not in milestones))
    return milestones, {index for index, _, _ in faulty} - milestones.keys()


def _carried(blocks: Blocks) -> dict[bytes, Milestone]:
    """Milestones that blocks carry, decoded already, by their payloads."""
    begin, end = blocks.payload_start, blocks.payload_start + blocks.payload_length
    return {
        blocks.data[begin[row] : end[row]].tobytes(): milestone
        for row, milestone in blocks.milestones.items()
    }


def _is_of_its_day(cone: Cone, protocol: Protocol) -> bool:
    time = cone.milestone.timestamp
    if utc_date(time) == cone.date:
        return True
    # A milestone whose time steps back over midnight belongs to the day of the one before it.
    return protocol == "chrysalis" and utc_date(time + STEP_BACK) == cone.date


def _payload_problem(milestone: Milestone, index: int, protocol: Protocol) -> tuple[ConeReason, str] | None:
    """Return reason and detail when a milestone's fields cannot be those of milestone ``index``."""
    if milestone.index != index:
        return "malformed", f"milestone payload: its index is {milestone.index}"
    if milestone.timestamp > _LAST_TIME:
        return "milestone_time", f"its time {milestone.timestamp} is no unix time in seconds"
    if protocol == "chrysalis" and milestone.receipt:
        created = sum(fund.deposit for fund in milestone.receipt.funds)
        left = milestone.receipt.treasury_output
        if created + left > SUPPLY:
            detail = f"its receipt creates {created} and leaves {left} in the treasury, of {SUPPLY}"
            return "receipt_amount", detail
    return None


def _orphans(prover: _Prover, index: int, rows: np.ndarray) -> None:
    if not prover.batch.blocks.context[rows[0]]:
        detail = f"{len(rows)} blocks belong to it, but the source does not hold it"
        prover.batch.problems.append(Problem(index, "milestone_missing", detail))


def _check_milestone(prover: _Prover, cone: Cone, row: int) -> None:
    milestone, claims, rules = cone.milestone, prover.batch.milestones, prover.rules
    claimed = claims.id[row].as_py()
    if claimed is not None and claimed != milestone.milestone_id:
        detail = f"its bytes have the milestone id {milestone.milestone_id.hex()}, not {claimed.hex()}"
        prover.fail(cone, "id_mismatch", detail)
    for problem in verify_signatures(milestone, rules.keys, rules.threshold_at(milestone.index)):
        prover.fail(cone, "milestone_signature", problem)
    if not _is_of_its_day(cone, rules.protocol):
        prover.fail(cone, "milestone_time", f"its time {milestone.timestamp} is out of order with its index")
    _check_treasury(prover, cone)
    before = prover.state.last
    if before is None or before[0] != milestone.index - 1:
        if milestone.index != rules.source_first:
            prover.fail(cone, "milestone_gap", f"milestone {milestone.index - 1} before it is missing")
    elif before[1] and milestone.previous_milestone_id not in (None, before[1]):
        prover.fail(
            cone, "milestone_link", f"it does not follow milestone {before[0]}: previous milestone id differs"
        )


def _check_treasury(prover: _Prover, cone: Cone) -> None:
    """Check that a receipt takes from the treasury what it creates (TIP-17), where that treasury is known."""
    receipt = cone.milestone.receipt
    if receipt is None:
        return
    created = sum(fund.deposit for fund in receipt.funds)
    remaining = prover.state.treasuries.get(receipt.treasury_input)
    held = prover.rules.treasuries.get(receipt.treasury_input) if remaining is None else remaining
    if held is not None and held != created + receipt.treasury_output:
        detail = f"its receipt creates {created} and leaves {receipt.treasury_output} of a treasury of {held}"
        prover.fail(cone, "receipt_amount", detail)
    _remember_treasury(prover, cone)


def _remember_treasury(prover: _Prover, cone: Cone) -> None:
    """Keep what a receipt leaves in the treasury: the milestone's id, its hash, binds the amount."""
    if receipt := cone.milestone.receipt:
        prover.state.treasuries[cone.milestone.milestone_id] = receipt.treasury_output


def _check_cone(prover: _Prover, cone: Cone, rows: np.ndarray, claimed: int) -> None:
    batch = prover.batch
    cone.message_row = _own_message(prover, cone, rows, claimed)
    prover.members[rows] = 1
    if cone.message_row >= 0:
        prover.member[cone.message_row] = 0
    for row, parent, distance in _absent_parents(prover, cone):
        child = f"block {batch.decoded.block_id[row].tobytes().hex()}" if row >= 0 else "the milestone"
        place = _place(distance, prover.rules.look_back)
        prover.fail(cone, "parent_missing", f"{child} refers to {parent.hex()}, {place}", row)
    order = white_flag_order(cone.roots, prover.first_edge, prover.edges, prover.member)
    left = rows[prover.members[rows] == 1].tolist()
    if left:
        first = batch.decoded.block_id[left[0]].tobytes().hex()
        detail = f"block {first} is not in its cone" + (
            f", nor are {len(left) - 1} more" if len(left) > 1 else ""
        )
        prover.fail(cone, "not_in_cone", detail, left[0])
    if cone.message_row >= 0:
        order.append(cone.message_row)
    cone.order = np.array(order, np.int64)
    _fill_states(prover, cone)
    if cone.fine:
        _check_claims(prover, cone, claimed)
    if cone.fine:
        _check_roots(prover, cone)


def _own_message(prover: _Prover, cone: Cone, rows: np.ndarray, claimed: int) -> int:
    """Chrysalis: the row of the message that carries the milestone; it is referenced by its own milestone."""
    if prover.rules.protocol != "chrysalis":
        return -1
    batch = prover.batch
    carriers = [
        row
        for row in rows[batch.decoded.payload_kind[rows] == payload.MILESTONE].tolist()
        if batch.decoded.milestones[row].milestone_id == cone.milestone.milestone_id
    ]
    named = batch.milestones.link[claimed].as_py()
    for row in carriers:
        if named in (None, batch.decoded.block_id[row].tobytes()):
            return int(row)
    prover.fail(cone, "milestone_message_missing", "the message that carries it is not in the source")
    return -1


def _place(distance: int | None, look_back: int) -> str:
    if distance is None:
        return f"which is not there, nor in the {look_back} milestones before (look_back)"
    where = f"{distance} milestones before it" if distance > 0 else f"{-distance} milestones after it"
    return f"which is referenced {where}; a cone reaches back {look_back} (look_back)"


def _absent_parents(prover: _Prover, cone: Cone) -> Iterator[tuple[int, bytes, int | None]]:
    """Yield every distinct parent that is neither here, nor referenced before, nor a solid entry point.

    As (row of its child, parent id, distance in milestones); row -1 is the milestone itself, the distance is
    None when the parent is not in the batch.
    """
    batch, index = prover.batch, cone.milestone.index
    missing: dict[bytes, tuple[int, int]] = {}  # parent id → (its row, its child's row)
    for edge in prover.absent.get(index, np.zeros(0, np.int64)).tolist():
        missing.setdefault(
            batch.decoded.parent[edge].tobytes(), (int(batch.edge[edge]), int(prover.child[edge]))
        )
    for parent, root in zip(cone.milestone.parents, cone.roots, strict=True):
        if root < 0 or not 0 <= index - batch.blocks.milestone[root] <= prover.rules.look_back:
            missing.setdefault(parent, (root, -1))
    for parent, (root, row) in missing.items():
        # A parent that is here lies too far back, or ahead of its child: no entry point either way.
        referenced = index - prover.state.referenced.get(parent, -index) <= prover.rules.look_back
        if root >= 0 or not (referenced or prover.rules.is_entry_point(index)):
            yield row, parent, index - int(batch.blocks.milestone[root]) if root >= 0 else None


def _fill_states(prover: _Prover, cone: Cone) -> None:
    """Where the source gives no state, the first message of each transaction that consumed is included."""
    batch, order = prover.batch, cone.order
    state = batch.blocks.state
    stateless = order[state[order] < 0]
    if not len(stateless):
        return
    is_transaction = batch.decoded.payload_kind[stateless] == payload.TRANSACTION
    state[stateless[~is_transaction]] = InclusionState.NO_TRANSACTION
    spenders = set(prover.spenders(cone.milestone.index))
    transactions = batch.decoded.transactions
    for row in stateless[is_transaction].tolist():
        at = int(transactions.block.searchsorted(row))
        transaction_id = transactions.transaction_id[at].tobytes()
        state[row] = InclusionState.INCLUDED if transaction_id in spenders else InclusionState.CONFLICTING
        spenders.discard(transaction_id)


def _check_claims(prover: _Prover, cone: Cone, claimed: int) -> None:
    batch, order = prover.batch, cone.order
    size = int(batch.milestones.number[claimed])
    if size not in (-1, len(order)):
        prover.fail(cone, "cone_size", f"{len(order)} blocks instead of {size}")
    number = batch.blocks.number[order]
    wrong = np.flatnonzero((number != -1) & (number != np.arange(len(order))))
    if len(wrong):
        row = int(order[wrong[0]])
        block = batch.decoded.block_id[row].tobytes().hex()
        detail = f"block {block} has white-flag index {wrong[0]}, the source says {number[wrong[0]]}"
        prover.fail(cone, "white_flag_order", detail, row)
    is_transaction = batch.decoded.payload_kind[order] == payload.TRANSACTION
    state = batch.blocks.state[order]
    has_outcome = (state == InclusionState.CONFLICTING) | (state == InclusionState.INCLUDED)
    wrong = np.flatnonzero(is_transaction != has_outcome)
    if len(wrong):
        row = int(order[wrong[0]])
        block = batch.decoded.block_id[row].tobytes().hex()
        prover.fail(cone, "inclusion_state", f"block {block}: its state does not fit its payload", row)


def _check_roots(prover: _Prover, cone: Cone) -> None:
    batch, order, milestone = prover.batch, cone.order, cone.milestone
    is_included = batch.blocks.state[order] == InclusionState.INCLUDED
    with_root = milestone.inclusion_root is not None
    leaves = hashed_leaves(batch.decoded.block_id[order if with_root else order[is_included]])
    included = list(compress(leaves, is_included.tolist())) if with_root else leaves
    if with_root and root_of_hashes(leaves) != milestone.inclusion_root:
        prover.fail(cone, "inclusion_root", "its blocks do not have the Merkle root that it states")
    elif root_of_hashes(included) != milestone.applied_root:
        prover.fail(
            cone, "applied_root", "its included transactions do not have the Merkle root that it states"
        )
