"""Bounds of text and bytes that Iceberg keeps of a data file, from its Parquet metadata.

Instead of PyIceberg's (0.12): its upper bounds of text step into the surrogates, which no UTF-8 holds
(apache/iceberg-python#3880), and its bounds pass over row groups whose values are too long for statistics of
their own, so that readers skip files which hold what they look for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import MetricModeTypes, MetricsMode, StatisticsCollector
from pyiceberg.types import BinaryType, StringType

_FIRST_SURROGATE, _AFTER_SURROGATES, _LAST = 0xD800, 0xE000, 0x10FFFF
_BOUNDED = (MetricModeTypes.TRUNCATE, MetricModeTypes.FULL)

Bounds = tuple[bytes, bytes | None]


def without_text_bounds(plan: Mapping[int, StatisticsCollector]) -> dict[int, StatisticsCollector]:
    """Return PyIceberg's plan of statistics with counts only for text and bytes."""
    counts = MetricsMode(MetricModeTypes.COUNTS)
    return {
        field: replace(column, mode=counts) if _is_bounded(column) else column
        for field, column in plan.items()
    }


def text_bounds(
    metadata: pq.FileMetaData, plan: Mapping[int, StatisticsCollector], fields: Mapping[str, int]
) -> dict[int, Bounds]:
    """Return (lower bound, upper bound [None: there is none]) of the columns of text and bytes, by field id.

    A column is left out when not every row group with values has its least and greatest.
    ``plan`` is PyIceberg's, ``fields`` are field ids by the columns' paths.
    """
    bounds_of = {}
    for at in range(metadata.num_columns):
        field = fields[metadata.schema.column(at).path]
        column = plan[field]
        groups = [metadata.row_group(group).column(at) for group in range(metadata.num_row_groups)]
        if _is_bounded(column) and (ends := list(_ends(groups))) and None not in ends:
            least, greatest = min(end[0] for end in ends if end), max(end[1] for end in ends if end)
            bounds = _of_text if isinstance(column.iceberg_type, StringType) else _of_bytes
            with suppress(UnicodeDecodeError):  # no bound is a true one
                bounds_of[field] = bounds(least, greatest, column.mode.length)
    return bounds_of


def _is_bounded(column: StatisticsCollector) -> bool:
    return isinstance(column.iceberg_type, (StringType, BinaryType)) and column.mode.type in _BOUNDED


def _ends(groups: Iterable[pq.ColumnChunkMetaData]) -> Iterator[tuple[bytes, bytes] | None]:
    """Yield the least and greatest value of each row group with values; None where it has none."""
    for group in groups:
        statistics = group.statistics
        if statistics is not None and statistics.has_min_max:
            yield statistics.min_raw, statistics.max_raw
        elif statistics is None or not statistics.has_null_count or statistics.null_count < group.num_values:
            yield None


def _of_text(least: bytes, greatest: bytes, length: int | None) -> Bounds:
    lower, upper = least.decode(), greatest.decode()
    end = upper if upper == upper[:length] else _text_after(upper[:length])
    return lower[:length].encode(), None if end is None else end.encode()


def _of_bytes(least: bytes, greatest: bytes, length: int | None) -> Bounds:
    return least[:length], greatest if greatest == greatest[:length] else _bytes_after(greatest[:length])


def _text_after(prefix: str) -> str | None:
    """Return the first text behind all that begin with ``prefix``; None where there is none."""
    for end in range(len(prefix), 0, -1):
        point = ord(prefix[end - 1]) + 1
        point = _AFTER_SURROGATES if point == _FIRST_SURROGATE else point
        if point <= _LAST:
            return prefix[: end - 1] + chr(point)
    return None


def _bytes_after(prefix: bytes) -> bytes | None:
    """Return the first bytes behind all that begin with ``prefix``; None where there are none."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None
