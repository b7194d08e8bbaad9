"""The canonical digest of a table's rows of one day; ``docs/digests.md`` specifies it byte by byte.

The rows, in the order of their key, are cut into blocks of 256. Each block is encoded column by column and is
a leaf of a Merkle tree. Files, engines and the order of rows in files do not matter.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from permalake.contracts import Table
from permalake.transparency import merkle

BLOCK_ROWS = 256
_BATCH_ROWS = 64 * BLOCK_ROWS
_FIXED = {"int": pa.int64(), "long": pa.int64(), "date": pa.int64(), "timestamptz": pa.int64()}


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
    def document(self) -> dict[str, Any]:
        """The digest's parts as a manifest has them, with the digest itself."""
        parts = {
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


def order_of(contract: Table) -> tuple[str, ...]:
    """Return the columns that sort rows: the contract's order, made unique by the rest of the key."""
    return (*contract.sort, *(name for name in contract.key if name not in contract.sort))


def table_digest(rows: ds.Dataset, contract: Table) -> TableDigest:
    """Return the digest of one day's rows of a table.

    Files whose rows are in order, as the lake's large ones are, are read as they lie; DuckDB sorts others.
    """
    columns, order = counted_columns(contract), order_of(contract)
    try:
        count, leaves = _leaves(_in_order(rows, [name for name, _ in columns], order), columns)
    except _NotInOrderError:
        count, leaves = _leaves(_sorted(rows, [name for name, _ in columns], order), columns)
    return TableDigest(columns, order, count, merkle.root(leaves).hex())


def encode_block(block: pa.Table, columns: Sequence[tuple[str, str]]) -> bytes:
    """Return the bytes of one block: the number of rows, then each column's presence and values."""
    prepared = [_Encoded(block[name].combine_chunks(), kind) for name, kind in columns]
    return b"".join([_count(len(block)), *(part for one in prepared for part in one.parts(0, len(block)))])


class _NotInOrderError(Exception):
    pass


def _leaves(batches: Iterator[pa.Table], columns: Sequence[tuple[str, str]]) -> tuple[int, list[bytes]]:
    leaves: list[bytes] = []
    rest: pa.Table | None = None
    count = 0
    for batch in batches:
        count += len(batch)
        rows = pa.concat_tables([rest, batch]) if rest is not None else batch
        whole = len(rows) - len(rows) % BLOCK_ROWS
        leaves += _hashes(rows.slice(0, whole), columns)
        rest = rows.slice(whole) if whole < len(rows) else None
    if rest is not None:
        leaves += _hashes(rest, columns)
    return count, leaves


def _hashes(rows: pa.Table, columns: Sequence[tuple[str, str]]) -> Iterator[bytes]:
    encoded = [_Encoded(rows[name].combine_chunks(), kind) for name, kind in columns]
    for start in range(0, len(rows), BLOCK_ROWS):
        end = min(start + BLOCK_ROWS, len(rows))
        leaf = sha256(b"\0")
        leaf.update(_count(end - start))
        for column in encoded:
            for part in column.parts(start, end):
                leaf.update(part)
        yield leaf.digest()


def _count(rows: int) -> bytes:
    return rows.to_bytes(4, "little")


class _Encoded:
    """A column whose rows can be cut out as bytes without looking at single values."""

    def __init__(self, values: pa.Array, kind: str) -> None:
        self._present = np.ascontiguousarray(
            pc.is_valid(values).to_numpy(zero_copy_only=False), dtype=np.uint8
        ).data
        self._data: memoryview | bytes
        self._lengths: memoryview | None = None
        self._ends: np.ndarray[Any, np.dtype[np.int64]] | None = None
        self._width = 8
        if kind in ("string", "binary"):
            content = values.cast(pa.large_binary()).fill_null(b"")
            self._cut(content, content.buffers()[2], 1)
        elif kind == "list<int>":
            lists = pc.coalesce(values, pa.scalar([], values.type)).cast(pa.large_list(pa.int64()))
            self._cut(lists, pa.array(lists.values).buffers()[1], 8)
        elif kind.startswith("decimal"):
            self._width = 16
            self._data = _buffer(values.fill_null(0), 16)
        elif kind == "double":
            # Adding zero makes the negative zero positive.
            self._data = (values.fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0).astype("<f8").tobytes()
        else:
            self._data = _buffer(_integers(values).fill_null(0), 8)

    def _cut(self, array: Any, data: pa.Buffer | None, width: int) -> None:
        ends = np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + len(array) + 1]
        self._lengths = np.diff(ends).astype("<u4").data
        self._ends = ends * width
        self._data = memoryview(data) if data is not None else b""

    def parts(self, start: int, end: int) -> Iterator[Any]:
        """Yield presence, lengths where values vary in length, and values of rows start..end (exclusive)."""
        yield self._present[start:end]
        if self._ends is None or self._lengths is None:
            yield self._data[start * self._width : end * self._width]
        else:
            yield self._lengths[start:end]
            yield self._data[self._ends[start] : self._ends[end]]


def _integers(values: pa.Array) -> pa.Array:
    if pa.types.is_date32(values.type):
        return values.cast(pa.int32()).cast(pa.int64())
    if pa.types.is_timestamp(values.type):
        return values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())
    return values.cast(pa.int64())


def _buffer(values: pa.Array, width: int) -> memoryview:
    return memoryview(values.buffers()[1])[values.offset * width : (values.offset + len(values)) * width]


def _in_order(rows: ds.Dataset, columns: list[str], order: Sequence[str]) -> Iterator[pa.Table]:
    """Yield the rows file by file; :class:`_NotInOrderError` where that is not the canonical order."""
    last: pa.Table | None = None
    for fragment in _by_first_row(rows, order):
        for batch in fragment.to_batches(rows.schema, columns, batch_size=_BATCH_ROWS):
            if not batch.num_rows:
                continue
            table = pa.Table.from_batches([batch])
            keys = table.select(list(order))
            _check_rising(pa.concat_tables([last, keys]) if last is not None else keys)
            last = keys.slice(len(keys) - 1)
            yield table


def _by_first_row(rows: ds.Dataset, order: Sequence[str]) -> list[Any]:
    fragments = list(rows.get_fragments())
    if len(fragments) < 2:
        return fragments
    names = list(order)
    firsts = [fragment.scanner(rows.schema, columns=names).head(1).to_pylist() for fragment in fragments]
    if any(None in first.values() for row in firsts for first in row):
        raise _NotInOrderError
    numbered = [(tuple(row[0].values()), at) for at, row in enumerate(firsts) if row]
    return [fragments[at] for _, at in sorted(numbered)]


def _check_rising(keys: pa.Table) -> None:
    """Check that each row's key is greater than the one before."""
    rising: Any = None
    for name in reversed(keys.column_names):
        column = keys[name].combine_chunks()
        if column.null_count:
            raise _NotInOrderError
        before, after = column.slice(0, len(column) - 1), column.slice(1)
        less = pc.less(before, after)
        rising = less if rising is None else pc.or_(less, pc.and_(pc.equal(before, after), rising))
    if rising is not None and not pc.all(rising, min_count=0).as_py():
        raise _NotInOrderError


def _sorted(rows: ds.Dataset, columns: list[str], order: Sequence[str]) -> Iterator[pa.Table]:
    import duckdb

    names = ", ".join(f'"{name}"' for name in columns)
    by = ", ".join(f'"{name}" ASC NULLS FIRST' for name in order)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("rows_of_day", rows)
        query = f"SELECT {names} FROM rows_of_day ORDER BY {by}"  # noqa: S608
        for batch in connection.sql(query).to_arrow_reader(_BATCH_ROWS):
            yield pa.Table.from_batches([batch])
