"""The canonical order of a table's rows of one day, whatever files hold them and in whatever order.

A few rows are sorted in memory. More are merged as they are read, from files that are sorted as the lake
sorts them, or at least by the first column of the order; DuckDB sorts others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from permalake.arrays.order import sorted_rows
from permalake.contracts import Table
from permalake.transparency.block_encoding import BLOCK_ROWS

_BATCH_ROWS = 64 * BLOCK_ROWS
_FEW = 1 << 15
"""Rows that are sorted at once."""
_MOST_HELD = 256 << 20
"""Bytes of rows that are held while files are merged."""
_Result = TypeVar("_Result")


def over_ordered(
    rows: ds.Dataset,
    columns: list[str],
    order: Sequence[str],
    consume: Callable[[Iterator[pa.Table]], _Result],
) -> _Result:
    """Return what ``consume`` makes of the rows in the canonical order, some thousand rows at a time.

    It is called a second time where files turn out not to be sorted.
    """
    if rows.count_rows() <= _FEW:
        return consume(_sorted_at_once(rows, columns, order))
    try:
        return consume(_merged(rows, columns, order))
    except _NotInOrderError:
        return consume(_sorted(rows, columns, order))


def ordered_rows(rows: ds.Dataset, contract: Table, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yield some columns of a day's rows in the canonical order, some thousand rows at a time.

    The columns of the order come along.
    """
    order = contract.order
    names = list(dict.fromkeys([*columns, *order]))
    if rows.count_rows() <= _FEW:
        yield from _sorted_at_once(rows, names, order)
        return
    try:
        for _ in _merged(rows, list(order), order):
            pass
    except _NotInOrderError:
        yield from _sorted(rows, names, order)
    else:
        yield from _merged(rows, names, order)


class _NotInOrderError(Exception):
    pass


class _File:
    """A file's rows that are read and not given out yet, in the order of their first key column.

    ``last`` is that column's value in the last of them; None where the whole file is read.
    """

    def __init__(self, batches: Iterator[pa.RecordBatch], lead: str) -> None:
        self._batches = (pa.Table.from_batches([batch]) for batch in batches if batch.num_rows)
        self._lead = lead
        self._held: list[pa.Table] = []
        self._next = next(self._batches, None)
        self.last: Any = None
        self.read()

    @property
    def bytes(self) -> int:
        """Bytes of the rows that are held."""
        return sum(rows.nbytes for rows in self._held)

    def read(self) -> None:
        """Read on, if there is more."""
        rows, self._next = self._next, next(self._batches, None)
        self.last = None
        if rows is None:
            return
        lead = rows[self._lead].combine_chunks()
        if lead.null_count:
            raise _NotInOrderError
        if pc.any(pc.greater(lead.slice(0, len(lead) - 1), lead.slice(1))).as_py():
            rows = rows.take(pc.sort_indices(lead))
        self._held.append(rows)
        if self._next is not None:
            self.last = rows[self._lead][-1].as_py()

    def before(self, bound: Any) -> list[pa.Table]:
        """Give out the rows below a value of the key column; all for None."""
        given: list[pa.Table] = []
        kept: list[pa.Table] = []
        if bound is None:
            given, self._held = self._held, []
            return given
        for rows in self._held:
            lead = rows[self._lead]
            count = pc.sum(pc.less(lead, pa.scalar(bound, lead.type)), min_count=0).as_py()
            given.append(rows.slice(0, count))
            kept.append(rows.slice(count))
        self._held = [rows for rows in kept if len(rows)]
        return [rows for rows in given if len(rows)]


def _merged(rows: ds.Dataset, columns: list[str], order: Sequence[str]) -> Iterator[pa.Table]:
    """Yield the rows in the canonical order, merged from files that are sorted by its first column.

    Raises:
        _NotInOrderError: where files are not, or so many rows agree in that column that memory does not do.
    """
    lead = order[0]
    waiting = _by_first_value(rows, lead)
    files: list[_File] = []
    last: Any = None
    while files or waiting:
        # What is below the bound is complete: whatever is still to be read follows it.
        ends = [file.last for file in files if file.last is not None]
        bound = min([*ends, *(first for first, _ in waiting[-1:])], default=None)
        given = [parts for file in files if (parts := file.before(bound))]
        if given:
            window = pa.concat_tables(chain.from_iterable(given))
            if len(given) > 1 or not _is_rising(window, order):
                window = sorted_rows(window, order)
            # Windows do not share a value of the first column.
            if last is not None and window[lead][0].as_py() <= last:
                raise _NotInOrderError
            last = window[lead][-1].as_py()
            yield window
        for file in files:
            if bound is not None and file.last == bound:
                file.read()
        while waiting and waiting[-1][0] == bound:
            fragment = waiting.pop()[1]
            files.append(_File(_batches(fragment, rows.schema, columns), lead))
        files = [file for file in files if file.last is not None or file.bytes]
        if sum(file.bytes for file in files) > _MOST_HELD:
            raise _NotInOrderError


def _by_first_value(rows: ds.Dataset, lead: str) -> list[tuple[Any, Any]]:
    """Return the files that have rows, each behind the first value of a column: the least comes last."""
    numbered = []
    for at, fragment in enumerate(rows.get_fragments()):
        first = _stated_least(fragment, lead)
        if first is None:
            for row in fragment.scanner(rows.schema, columns=[lead]).head(1).to_pylist():
                first = row[lead]
                if first is None:
                    raise _NotInOrderError
        if first is not None:
            numbered.append((first, at, fragment))
    return [
        (first, fragment)
        for first, _, fragment in sorted(numbered, key=lambda entry: entry[:2], reverse=True)
    ]


def _batches(fragment: ds.Fragment, schema: pa.Schema, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file, as a dataset does.

    A dataset takes a fifth longer. So a file is read directly if its columns have the types of ``schema``.
    """
    asked = pa.schema([schema.field(name) for name in columns])
    if isinstance(fragment, ds.ParquetFileFragment):
        with (
            fragment.filesystem.open_input_file(fragment.path) as source,
            pq.ParquetFile(source, metadata=fragment.metadata) as file,
        ):
            held = {field.name: field.type for field in file.schema_arrow}
            if all(held.get(field.name) == field.type for field in asked):
                for batch in file.iter_batches(_BATCH_ROWS, columns=columns, use_threads=False):
                    yield pa.record_batch([batch[name] for name in columns], asked)
                return
    yield from fragment.to_batches(schema, columns, batch_size=_BATCH_ROWS)


def _stated_least(fragment: Any, lead: str) -> Any:
    """Return the least value of a column by a Parquet file's own words; None where it does not say."""
    if not isinstance(fragment, ds.ParquetFileFragment):
        return None
    stated = [group.statistics.get(lead, {}).get("min") for group in fragment.row_groups]
    is_known = stated and all(isinstance(value, int | str) for value in stated)
    return min(stated) if is_known else None


def _is_rising(window: pa.Table, order: Sequence[str]) -> bool:
    """Return whether each row's key is greater than the one before.

    Keys that hold nulls do not count as rising.
    """
    tied: Any = True
    for name in order:
        column = window[name].combine_chunks()
        if column.null_count:
            return False
        before, after = column.slice(0, len(column) - 1), column.slice(1)
        tied = pc.and_not(tied, pc.less(before, after))
        if not pc.any(tied, min_count=0).as_py():
            return True
        if pc.any(pc.and_not(tied, pc.equal(before, after))).as_py():
            return False
    return False


def _sorted_at_once(rows: ds.Dataset, columns: list[str], order: Sequence[str]) -> Iterator[pa.Table]:
    if len(table := rows.to_table(columns)):
        yield sorted_rows(table, order)


def _sorted(rows: ds.Dataset, columns: list[str], order: Sequence[str]) -> Iterator[pa.Table]:
    from permalake.engine.connection import connect

    names = ", ".join(f'"{name}"' for name in columns)
    by = ", ".join(f'"{name}" ASC NULLS FIRST' for name in order)
    with connect() as connection:
        connection.register("rows_of_day", rows)
        query = f"SELECT {names} FROM rows_of_day ORDER BY {by}"  # noqa: S608
        for batch in connection.sql(query).to_arrow_reader(_BATCH_ROWS):
            yield pa.Table.from_batches([batch])
