"""The records of some whole milestones as arrays: what the checks of a cone work on."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from permalake.arrays.slices import fixed
from permalake.contracts.reason_codes import ConeReason
from permalake.errors import line_of
from permalake.iota.codec.blocks import Blocks, decode_blocks
from permalake.iota.codec.outputs import Protocol
from permalake.iota.cone.source_records import LOOK_BACK, Record

I64 = np.ndarray
_UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that does not hold. One that ``breaks`` keeps its day unpublished."""

    milestone: int
    reason: ConeReason
    detail: str
    origin: str = ""
    raw: bytes | None = None
    breaks: bool = True


def undecodable(milestone: int, error: Exception) -> Problem:
    """Return the problem of a milestone that no row can be made of."""
    return Problem(milestone, "undecodable", line_of(error)[:200])


@dataclass(slots=True)
class ConeState:
    """The blocks already referenced when the next milestone is looked at."""

    look_back: int = LOOK_BACK
    referenced: dict[bytes, int] = field(default_factory=dict)  # block id → milestone index
    # Index and id (None: not valid) of the milestone before.
    last: tuple[int, bytes | None] | None = None
    treasuries: dict[bytes, int] = field(default_factory=dict)  # milestone id → what its receipt left
    _recent: deque[tuple[int, list[bytes]]] = field(default_factory=deque)

    def copy(self) -> ConeState:
        """Return a state that goes on by itself."""
        return replace(
            self,
            referenced=dict(self.referenced),
            treasuries=dict(self.treasuries),
            _recent=deque(self._recent),
        )

    def remember(self, milestone: int, ids: Iterable[bytes]) -> None:
        """Count ``ids`` as referenced by ``milestone``; what no later cone may reach is forgotten."""
        kept = list(ids)
        self._recent.append((milestone, kept))
        self.referenced.update(dict.fromkeys(kept, milestone))
        while self._recent and self._recent[0][0] <= milestone - self.look_back:
            old, forgotten = self._recent.popleft()
            for block_id in forgotten:
                if self.referenced.get(block_id) == old:
                    del self.referenced[block_id]


@dataclass(slots=True)
class SourceRecords:
    """Records of one kind: the source's columns, row by row."""

    milestone: I64
    context: np.ndarray
    id: pa.Array
    raw: pa.Array
    link: pa.Array
    state: I64
    conflict: I64
    number: I64
    origin: pa.Array

    @classmethod
    def of(cls, table: pa.Table) -> SourceRecords:
        """Return the columns of ``table``; absent numbers are -1."""
        column = {name: _one(table.column(name)) for name in table.column_names}
        number = {
            name: pc.fill_null(column[name].cast(pa.int64()), _UNKNOWN).to_numpy(zero_copy_only=False)
            for name in ("milestone", "state", "conflict", "number")
        }
        number["state"] = number["state"].copy()  # absent ones are filled in
        binary = {name: column[name] for name in ("id", "raw", "link", "origin")}
        return cls(context=column["context"].to_numpy(zero_copy_only=False), **number, **binary)

    def __len__(self) -> int:
        return len(self.milestone)


@dataclass(slots=True)
class MilestoneBatch:
    """Whole milestones in order.

    ``row`` arrays speak of block records; ``sound`` rows are well-formed, carry the id that they claim and
    are no repetition.

    ``edge``: for each parent (as :attr:`Blocks.parent`) the row of that block in this batch, -1 when it is
    not here.
    """

    protocol: Protocol
    milestones: SourceRecords
    blocks: SourceRecords
    consumed: SourceRecords
    changes: SourceRecords
    malformed: SourceRecords
    decoded: Blocks
    sound: np.ndarray
    distinct_ids: pa.Array
    row_of: I64
    edge: I64
    problems: list[Problem] = field(default_factory=list)

    @classmethod
    def of(cls, table: pa.Table, protocol: Protocol) -> MilestoneBatch:
        """Sort the records by kind, decode the blocks, recompute their ids and link parents to rows."""
        kind = table.column("kind").to_numpy()
        part = {k: SourceRecords.of(table.filter(pa.array(kind == int(k)))) for k in Record}
        blocks = part[Record.BLOCK]
        decoded = decode_blocks(blocks.raw, protocol)
        same_id = _same(decoded.block_id, blocks.id)
        sound = (decoded.error == 0) & same_id
        coded = fixed(decoded.block_id).dictionary_encode()
        code = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        repeated = _repeated(code, blocks.milestone)
        problems = _refused(blocks, decoded, same_id & ~repeated, repeated)
        sound &= ~repeated
        row_of = np.full(len(coded.dictionary) + 1, _UNKNOWN, np.int64)
        rows = np.flatnonzero(sound)[::-1]
        row_of[code[rows]] = rows  # the earliest milestone's row stays
        batch = cls(
            protocol,
            part[Record.MILESTONE],
            blocks,
            part[Record.CONSUMED],
            part[Record.CHANGES],
            part[Record.MALFORMED],
            decoded,
            sound,
            coded.dictionary,
            row_of,
            np.zeros(0, np.int64),
            problems,
        )
        batch.edge = batch.rows_of_ids(fixed(decoded.parent))
        return batch

    def rows_of_ids(self, ids: pa.Array) -> I64:
        """Rows of the blocks with these ids (fixed 32 bytes), -1 where there is none."""
        code = pc.index_in(ids, value_set=self.distinct_ids)
        rows: np.ndarray = self.row_of[pc.fill_null(code, _UNKNOWN).to_numpy(zero_copy_only=False)]
        return rows


def _one(column: pa.ChunkedArray) -> pa.Array:
    joined = column.combine_chunks()
    return joined if isinstance(joined, pa.Array) else pa.concat_arrays(joined.chunks)


def _same(ids: np.ndarray, claimed: pa.Array) -> np.ndarray:
    """Whether computed ids (u8[n, w]) equal the claimed ones; a missing claim claims nothing."""
    computed = fixed(ids).cast(pa.binary())
    equal = pc.equal(computed, claimed.cast(pa.binary()))
    same: np.ndarray = pc.fill_null(equal, True).to_numpy(zero_copy_only=False)
    return same


def _repeated(code: I64, milestone: I64) -> np.ndarray:
    """Rows whose (block, milestone) occurred before."""
    if not len(code):
        return np.zeros(0, bool)
    key = code * (int(milestone.max()) + 1) + milestone
    repeated = np.ones(len(key), bool)
    repeated[np.unique(key, return_index=True)[1]] = False
    return repeated


def _refused(blocks: SourceRecords, decoded: Blocks, same: np.ndarray, repeated: np.ndarray) -> list[Problem]:
    faulty = np.flatnonzero(((decoded.error != 0) | ~same) & ~blocks.context & ~repeated)
    problems = []
    for row in faulty:
        at = int(blocks.milestone[row]), str(blocks.origin[row]), blocks.raw[row].as_py()
        claimed = blocks.id[row].as_py()
        named = claimed.hex() if claimed else decoded.block_id[row].tobytes().hex()
        if not same[row]:
            detail = f"block {named}: its bytes have the id {decoded.block_id[row].tobytes().hex()}"
            problems.append(Problem(at[0], "id_mismatch", detail, at[1], at[2]))
        else:
            problems.append(
                Problem(at[0], "malformed", f"block {named}: {decoded.reason(int(row))}", at[1], at[2])
            )
    return problems
