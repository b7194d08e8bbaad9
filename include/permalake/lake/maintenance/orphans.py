"""Orphans: files of the warehouse that nobody needs any more."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath

from sqlalchemy import Connection, func, select

from permalake.config import Settings
from permalake.errors import PermalakeError
from permalake.lake import leases
from permalake.lake.database import Database
from permalake.lake.maintenance import history
from permalake.lake.maintenance.limits import Limits
from permalake.lake.maintenance.needed import needed, roots
from permalake.lake.maintenance.storage import Stored, listing
from permalake.lake.staging import LANDINGS
from permalake.lake.state import attempts, moment
from permalake.lake.state import leases as lease_table
from permalake.lake.warehouse_files import RUNBOOK
from permalake.net.object_storage import inner_path

MAX_SHARE = 0.5
"""A maintenance removes at most this share of a network's files and bytes, unless it is confirmed."""
_FOLDERS = {"data", "metadata"}


@dataclass
class Orphans:
    """Needless files by table, and why the files of other tables were left alone."""

    files: dict[str, list[Stored]] = field(default_factory=dict)
    total_files: int = 0
    total_bytes: int = 0
    spared: dict[str, str] = field(default_factory=dict)


def orphans(settings: Settings, database: Database, network: str, limits: Limits) -> Orphans:
    """Find files below the network's tables that nothing points to and that are not young."""
    base = f"{settings.lake.warehouse}/{network}"
    # Listed before the pointers are read: what is written and published in between is not in the list, and
    # what was written before and is published later belongs to a build that holds its days now.
    listed = listing(base)
    with database.read() as connection:
        table_roots = roots(connection, network, limits)
        young = min(limits.young, _oldest_build(connection, network) or limits.young)
    keep = needed(table_roots)
    result = Orphans(
        total_files=len(listed),
        total_bytes=sum(file.size for file in listed),
        spared=dict(keep.lacking),
    )
    for file in listed:
        table, *inside = PurePosixPath(file.path).relative_to(inner_path(base)).parts
        ours = table in keep.paths and table not in result.spared and inside[:-1] and inside[0] in _FOLDERS
        if ours and file.written < young and file.path not in keep.paths[table]:
            result.files.setdefault(table, []).append(file)
    return result


def check_share(network: str, unneeded: Orphans) -> None:
    """Check that what is needless is not most of what there is, in number and in bytes.

    Raises:
        PermalakeError: if it is: a catalog that lost tables or days looks like that.
    """
    needless = [file for files in unneeded.files.values() for file in files]
    size = sum(file.size for file in needless)
    if len(needless) > MAX_SHARE * unneeded.total_files and size > MAX_SHARE * unneeded.total_bytes:
        raise PermalakeError(
            f"{network}: {len(needless):,} of {unneeded.total_files:,} files are needless by the catalog; no "
            "file was removed; if `permalake maintain --dry-run` shows what you expect, run it with "
            f"--confirm-removal, else see {RUNBOOK}"
        )


def _oldest_build(connection: Connection, network: str) -> datetime | None:
    """Return when the oldest build that may still write was begun."""
    alive = leases.oldest_beat(connection)
    oldest = connection.execute(
        select(func.min(attempts.c.begun_at))
        .join(
            lease_table,
            (lease_table.c.run_id == attempts.c.run_id)
            & (lease_table.c.network == attempts.c.network)
            & (lease_table.c.kind == attempts.c.kind),
        )
        .where(attempts.c.network == network, attempts.c.state == "open", lease_table.c.beat_at >= alive)
    ).scalar()
    return moment(oldest) if oldest else None


def landings(settings: Settings, database: Database, limits: Limits) -> dict[str, list[Stored]]:
    """Find landing folders, none of them young, of attempts that are over, abandoned or unknown."""
    base = f"{settings.lake.warehouse}/{LANDINGS}"
    folders: dict[str, list[Stored]] = {}
    for file in listing(base):
        attempt_id = PurePosixPath(file.path).relative_to(inner_path(base)).parts[0]
        folders.setdefault(attempt_id, []).append(file)
    with database.read() as connection:
        rows = connection.execute(
            select(attempts.c.attempt_id, attempts.c.network).where(attempts.c.state == "open")
        ).all()
        given_up = {
            attempt_id
            for network in {row.network for row in rows}
            for attempt_id in history.abandoned(connection, network, limits)
        }
    still_open = {row.attempt_id for row in rows} - given_up
    return {
        attempt_id: files
        for attempt_id, files in folders.items()
        if attempt_id not in still_open and max(file.written for file in files) < limits.young
    }
