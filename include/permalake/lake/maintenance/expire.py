"""Snapshot expiry: tables forget snapshots that nobody may go back to."""

from __future__ import annotations

from pyiceberg.table import Table as IcebergTable

from permalake.lake.catalog import open_table
from permalake.lake.maintenance.commit import Work, change_table
from permalake.lake.maintenance.limits import Limits
from permalake.lake.state import PUBLISHED


def expirable(location: str, limits: Limits) -> int:
    """Count the snapshots that the table lists, are older than the history and not current."""
    return len(_old(open_table(location), limits))


def expire(work: Work, table: str, limits: Limits, of: str = PUBLISHED) -> int:
    """Drop those snapshots from the list of a table under ``of``; return how many.

    Their files go with the orphans.
    """
    dropped = 0

    def edit(current: IcebergTable) -> None:
        nonlocal dropped
        dropped = len(_old(current, limits))
        if dropped:
            current.maintenance.expire_snapshots().older_than(limits.history).commit()

    change_table(work, table, edit, of)
    return dropped


def _old(table: IcebergTable, limits: Limits) -> list[int]:
    heads = {ref.snapshot_id for ref in table.metadata.refs.values()}
    before = int(limits.history.timestamp() * 1000)
    return [
        snapshot.snapshot_id
        for snapshot in table.metadata.snapshots
        if snapshot.timestamp_ms < before and snapshot.snapshot_id not in heads
    ]
