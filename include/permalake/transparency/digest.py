"""The canonical digest of a table's rows of one day; ``docs/digests.md`` specifies it byte by byte.

The rows, in the order of their key, are cut into blocks of 256. Each block is encoded column by column and is
a leaf of a Merkle tree. Files, engines and the order of rows in files do not matter.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from permalake.contracts import Table
from permalake.transparency import merkle
from permalake.transparency.block_encoding import BLOCK_ROWS, encode_block, leaf_hashes, whole_blocks
from permalake.transparency.documents import DigestParts, SignedDigest
from permalake.transparency.row_order import over_ordered


@dataclass(frozen=True)
class TableDigest:
    """The digest of a table's rows of one day.

    Attributes:
        columns: Name and contract type of each column that counts, in order.
        order: The columns by which rows are sorted, ascending.
        root: Root of the Merkle tree over the blocks, in hex.
    """

    columns: tuple[tuple[str, str], ...]
    order: tuple[str, ...]
    rows: int
    root: str

    @property
    def document(self) -> SignedDigest:
        """The digest's parts as a manifest has them, with the digest itself."""
        parts: DigestParts = {
            "block": BLOCK_ROWS,
            "columns": [list(column) for column in self.columns],
            "order": list(self.order),
            "root": self.root,
            "rows": self.rows,
        }
        return {**parts, "digest": sha256(canonical_json(parts)).hexdigest()}

    @property
    def hex(self) -> str:
        """The digest."""
        return str(self.document["digest"])


def canonical_json(document: Any) -> bytes:
    """Return JSON as RFC 8785 writes it, for what manifests hold: text, integers, lists, objects, null."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False)
    return text.encode()


def counted_columns(contract: Table) -> tuple[tuple[str, str], ...]:
    """Return the columns that a digest covers: all but those that hold a clock of whoever built the day."""
    return tuple((c.name, c.type) for c in contract.columns if c.name not in contract.first_value)


def table_digest(rows: ds.Dataset, contract: Table, *, of_others: bool = False) -> TableDigest:
    """Return the digest of one day's rows of a table.

    ``of_others``: nobody here has seen to it that columns have values where the contract asks for them, so
    that a null there raises ``pa.ArrowInvalid``.
    """
    columns, order = counted_columns(contract), contract.order
    required = [name for name, _ in columns if of_others and contract.column(name).required]

    def digest(batches: Iterator[pa.Table]) -> TableDigest:
        leaves: list[bytes] = []
        count = 0
        for rows_of_blocks in whole_blocks(batches):
            if lacking := [name for name in required if rows_of_blocks[name].null_count]:
                raise pa.ArrowInvalid(f"a row has no {lacking[0]}")
            count += len(rows_of_blocks)
            leaves += leaf_hashes(rows_of_blocks, columns)
        return TableDigest(columns, order, count, merkle.root(leaves).hex())

    with _reused_memory():
        return over_ordered(rows, [name for name, _ in columns], order, digest)


@contextmanager
def _reused_memory() -> Iterator[None]:
    """Let Arrow take memory from the C library while rows are hashed.

    It hands the memory of one batch to the next; Arrow's own allocator asks the kernel for fresh pages, which
    costs twice the time in the kernel.
    """
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)


@dataclass(frozen=True)
class PlacedRow:
    """A row within the tree of its table's day.

    Attributes:
        digest: The digest of the table's day.
        block: Bytes of the block that holds the row.
        row: Its place in the block, from 0.
        index: The block's place among the leaves, from 0.
        path: The siblings from the block's leaf up to the root, the nearest first.
    """

    digest: TableDigest
    block: bytes
    row: int
    index: int
    path: tuple[bytes, ...]


def placed_row(rows: ds.Dataset, contract: Table, key: Mapping[str, Any]) -> PlacedRow | None:
    """Return the place of the row that has these values; None where there is none.

    All rows of the day are read and hashed.
    """
    columns, order = counted_columns(contract), contract.order
    names = [name for name, _ in columns]
    return over_ordered(rows, names, order, lambda batches: _placed(batches, columns, order, key))


def _placed(
    batches: Iterator[pa.Table],
    columns: tuple[tuple[str, str], ...],
    order: tuple[str, ...],
    key: Mapping[str, Any],
) -> PlacedRow | None:
    leaves: list[bytes] = []
    place: tuple[bytes, int, int] | None = None
    count = 0
    for rows in whole_blocks(batches):
        at = -1 if place else _row_of(rows, key)
        if at >= 0:
            start = at - at % BLOCK_ROWS
            block = encode_block(rows.slice(start, BLOCK_ROWS), columns)
            place = block, at - start, len(leaves) + start // BLOCK_ROWS
        leaves += leaf_hashes(rows, columns)
        count += len(rows)
    if place is None:
        return None
    block, row, index = place
    digest = TableDigest(columns, order, count, merkle.root(leaves).hex())
    return PlacedRow(digest, block, row, index, tuple(merkle.inclusion_proof(leaves, index)))


def _row_of(rows: pa.Table, key: Mapping[str, Any]) -> int:
    """Return the first row that has these values; -1 where there is none."""
    same: Any = None
    for name, value in key.items():
        equal = pc.equal(rows[name], value)
        same = equal if same is None else pc.and_(same, equal)
    return int(pc.index(same, True).as_py())
