"""Rows into Bigtable: whole rows, each replaced at once, with the cells' own timestamps.

The Spark connector sets one timestamp per write, so rows are sent from Python, in Spark's workers: as
requests spelled a batch at a time, over the connection of Google's client.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from permalake.config.stores import BigtableSettings
from permalake.stores.bigtable_client import client
from permalake.stores.bigtable_send import SEND_LIMITS, Sender, SendLimits, unreachable
from permalake.stores.bigtable_wire import entries, requests

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# One request: Bigtable takes 100,000 mutations; a few megabytes keep every server's message limit.
_ROWS = 1000
_BYTES = 2_000_000
_ADMIN_SECONDS = 15
_PART_BYTES = 256 << 20
_EMULATOR = "BIGTABLE_EMULATOR_HOST"
_COUNT = "rows bigint"


def has_table(settings: BigtableSettings, table: str) -> bool:
    """Return whether there is a table."""
    from google.api_core.exceptions import GoogleAPIError

    instance = _instance(settings)
    try:
        return _families(instance, instance.table(table).name) is not None
    except GoogleAPIError as error:
        raise unreachable(table, str(error)) from None


def ensure_table(settings: BigtableSettings, table: str, families: Iterable[str]) -> bool:
    """Create the table and its families where they are missing; return whether the table was created.

    Families have no garbage collection: nothing ever drops a day or a cell of the history.
    """
    from google.api_core.exceptions import AlreadyExists, GoogleAPIError

    instance = _instance(settings)
    handle = instance.table(table)
    try:
        present = _families(instance, handle.name)
        if present is not None:
            for family in sorted(set(families) - present):
                handle.column_family(family).create()
            return False
        handle.create(column_families=dict.fromkeys(families))
    except AlreadyExists:
        return False
    except GoogleAPIError as error:
        raise unreachable(table, str(error)) from None
    return True


def _families(instance: Any, name: str) -> set[str] | None:
    """Return the families of a table, None if there is none.

    Asked once and briefly: the client's own retries take a minute for each question to a server that is
    down, and whoever asks tries again anyway.
    """
    from google.api_core.exceptions import NotFound

    admin = instance._client.table_admin_client  # noqa: SLF001 - the client has no other way
    try:
        return set(admin.get_table(name=name, timeout=_ADMIN_SECONDS, retry=None).column_families)
    except NotFound:
        return None


def write(frame: DataFrame, settings: BigtableSettings, table: str) -> int:
    """Replace the rows of ``frame``, columns as of ``events.event_cells``; return how many.

    A row without cells is deleted. A request that keeps failing fails the write.
    """
    written = frame.mapInArrow(_writer(settings, table), _COUNT).agg({"rows": "sum"}).first()
    return int(written[0] or 0) if written else 0


def sender(
    settings: BigtableSettings, table: str, limits: SendLimits = SEND_LIMITS
) -> Callable[[Iterable[pa.RecordBatch]], int]:
    """Return what replaces rows, as :func:`write` does, in whichever process it is called; it counts them."""
    run = _writer(settings, table, limits)

    def send(batches: Iterable[pa.RecordBatch]) -> int:
        return sum(written["rows"][0].as_py() for written in run(batches))

    return send


def delete(keys: DataFrame, settings: BigtableSettings, table: str) -> int:
    """Delete the rows whose ``row_key`` is in ``keys``; returns how many."""
    return write(keys.select("row_key"), settings, table)


def _instance(settings: BigtableSettings) -> Any:
    return client(settings, admin=True).instance(settings.instance)


def _writer(
    settings: BigtableSettings, table: str, limits: SendLimits = SEND_LIMITS
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    # A worker's environment is that of the JVM's start, not of this moment.
    emulator = os.environ.get(_EMULATOR)
    name = f"projects/{settings.project}/instances/{settings.instance}/tables/{table}"

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if emulator:
            os.environ[_EMULATOR] = emulator
        sender = Sender(settings, table, name, limits)
        for batch in batches:
            for part in _parts(batch):
                written = entries(part)
                for first, end, request in requests(name, written, _ROWS, _BYTES):
                    sender.send(written[first:end], request)
            yield pa.RecordBatch.from_pydict({"rows": pa.array([batch.num_rows], pa.int64())})
        sender.finish()

    return run


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the batch in pieces whose bytes Arrow can address as one."""
    rows = max(1, batch.num_rows * _PART_BYTES // max(batch.nbytes, 1))
    for first in range(0, batch.num_rows, rows):
        yield batch.slice(first, rows)
