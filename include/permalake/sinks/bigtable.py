"""Rows into Bigtable: whole rows, each replaced at once, with the cells' own timestamps.

The Spark connector sets one timestamp per write, so rows go through Google's client in Spark's workers.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from permalake.config import BigtableSettings
from permalake.errors import PermalakeError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# One request: Bigtable takes 100,000 mutations; a few megabytes keep every server's message limit.
_ROWS = 1000
_BYTES = 2_000_000
_TRIES = 6
# Codes of google.rpc that say "again": DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, ABORTED, INTERNAL, UNAVAILABLE.
_AGAIN = frozenset((4, 8, 10, 13, 14))
_EMULATOR = "BIGTABLE_EMULATOR_HOST"
_COUNT = "rows bigint"


def configured(settings: BigtableSettings) -> dict[str, str]:
    """Table names by version (``v2``, ``v1``) that are published; empty when Bigtable is not configured."""
    if not (settings.project and settings.instance):
        return {}
    tables = {"v2": settings.table, "v1": settings.table_v1}
    return {version: name for version, name in tables.items() if name}


def ensure_table(settings: BigtableSettings, table: str, families: Iterable[str]) -> bool:
    """The table and its families exist; whether the table had to be created (and so is empty).

    Families have no garbage collection: nothing ever drops a day or a cell of the history.
    """
    from google.api_core.exceptions import AlreadyExists, GoogleAPIError

    handle = _instance(settings).table(table)
    try:
        if handle.exists():
            for family in sorted(set(families) - set(handle.list_column_families())):
                handle.column_family(family).create()
            return False
        handle.create(column_families=dict.fromkeys(families))
    except AlreadyExists:
        return False
    except GoogleAPIError as error:
        raise _unreachable(table, str(error)) from None
    return True


def write(frame: DataFrame, settings: BigtableSettings, table: str) -> int:
    """Replace the rows of ``frame`` (``row_key``, ``cells`` as in ``transforms.bigtable_cells``); returns how
    many. A row without cells is deleted. A request that keeps failing fails the write."""
    return _run(frame.select("row_key", "cells"), settings, table)


def delete(keys: DataFrame, settings: BigtableSettings, table: str) -> int:
    """Delete the rows whose ``row_key`` is in ``keys``; returns how many."""
    from pyspark.sql import functions as F

    from permalake.transforms.bigtable_cells import CELL

    return _run(keys.select("row_key", F.array().cast(f"array<{CELL}>").alias("cells")), settings, table)


def _run(frame: DataFrame, settings: BigtableSettings, table: str) -> int:
    written = frame.mapInArrow(_writer(settings, table), _COUNT).agg({"rows": "sum"}).first()
    return int(written[0] or 0) if written else 0


def _instance(settings: BigtableSettings) -> Any:
    from google.cloud.bigtable import Client

    return Client(project=settings.project, admin=True).instance(settings.instance)


def _writer(
    settings: BigtableSettings, table: str
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    # A worker's environment is that of the JVM's start, not of this moment.
    emulator = os.environ.get(_EMULATOR)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from google.cloud.bigtable import Client

        if emulator:
            os.environ[_EMULATOR] = emulator
        client = Client(project=settings.project).table_data_client
        name = f"projects/{settings.project}/instances/{settings.instance}/tables/{table}"
        for batch in batches:
            for entries in _requests(batch):
                _send(client, name, entries)
            yield pa.RecordBatch.from_pydict({"rows": pa.array([batch.num_rows], pa.int64())})

    return run


def _requests(batch: pa.RecordBatch) -> Iterator[list[Any]]:
    from google.cloud.bigtable_v2.types import MutateRowsRequest

    make = MutateRowsRequest.Entry.pb()
    entries: list[Any] = []
    size = 0
    for key, cells in zip(batch["row_key"].to_pylist(), batch["cells"].to_pylist(), strict=True):
        entry = make(row_key=key.encode())
        # The row as a whole is replaced in one atomic mutation: no cell of an earlier build stays.
        entry.mutations.add().delete_from_row.SetInParent()
        for cell in cells:
            entry.mutations.add().set_cell.MergeFrom(_set_cell(cell))
        entries.append(entry)
        size += entry.ByteSize()
        if len(entries) >= _ROWS or size >= _BYTES:
            yield entries
            entries, size = [], 0
    if entries:
        yield entries


def _set_cell(cell: dict[str, Any]) -> Any:
    from google.cloud.bigtable_v2.types import Mutation

    return Mutation.SetCell.pb()(
        family_name=cell["family"],
        column_qualifier=cell["qualifier"].encode(),
        timestamp_micros=cell["micros"],
        value=bytes(cell["value"]),
    )


def _send(client: Any, table: str, entries: list[Any]) -> None:
    """Send until every entry is taken; entries that fail for good fail the write."""
    from google.api_core.exceptions import GoogleAPICallError
    from google.cloud.bigtable_v2.types import MutateRowsRequest

    reason = ""
    for number in range(_TRIES):
        request = MutateRowsRequest.wrap(MutateRowsRequest.pb()(table_name=table, entries=entries))
        failed = []
        try:
            for answer in client.mutate_rows(request=request, timeout=60):
                for one in answer.entries:
                    if one.status.code:
                        reason = one.status.message
                        if one.status.code not in _AGAIN:
                            raise _unreachable(table, reason)
                        failed.append(entries[one.index])
        except GoogleAPICallError as error:
            reason, failed = str(error.message), entries
            if error.grpc_status_code and error.grpc_status_code.value[0] not in _AGAIN:
                raise _unreachable(table, reason) from None
        if not failed:
            return
        entries = failed
        time.sleep(min(0.2 * 2**number, 5))
    raise _unreachable(table, reason)


def _unreachable(table: str, reason: str) -> PermalakeError:
    line = " ".join(reason.split())
    return PermalakeError(
        f"Bigtable table {table}: {line}; check bigtable.* and that the server answers "
        "(`permalake services status`)"
    )
