"""Everything but compaction: no Spark, no data file opened."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date

from sqlalchemy import select

from permalake.config import Settings
from permalake.lake.catalog import UnreadableTableError, locations
from permalake.lake.database import Database
from permalake.lake.maintenance import history
from permalake.lake.maintenance.commit import alone
from permalake.lake.maintenance.compact import fragmented_tables
from permalake.lake.maintenance.expire import expirable, expire
from permalake.lake.maintenance.history import PastState
from permalake.lake.maintenance.limits import Limits
from permalake.lake.maintenance.orphans import Orphans, check_share, landings, orphans
from permalake.lake.maintenance.storage import remove, remove_folder
from permalake.lake.publication_log import write_log
from permalake.lake.staging import LANDINGS
from permalake.lake.state import PUBLISHED, STORES, networks


@dataclass
class MaintenanceResult:
    """The changes made (or, in a dry run, due) to a table, or to a folder that is none."""

    name: str
    days: int = 0  # compacted
    files_before: int = 0
    files_after: int = 0
    snapshots: int = 0  # expired
    states: int = 0  # forgotten
    removed: int = 0  # files
    freed: int = 0  # bytes
    spared: str | None = None  # why nothing was removed

    @classmethod
    def compacted(cls, name: str, days: Mapping[date, tuple[int, int]]) -> MaintenanceResult:
        """Of a compaction: (files before, files after) of each day."""
        before, after = (sum(files[at] for files in days.values()) for at in (0, 1))
        return cls(name, days=len(days), files_before=before, files_after=after)

    def __str__(self) -> str:
        parts = []
        if self.days:
            after = f" into {self.files_after}" if self.files_after else ""
            parts.append(f"{_many(self.days, 'day')} compacted ({_many(self.files_before, 'file')}{after})")
        if self.snapshots:
            parts.append(f"{_many(self.snapshots, 'snapshot')} expired")
        if self.states:
            parts.append(f"{_many(self.states, 'past state')} forgotten")
        if self.removed:
            parts.append(f"{_many(self.removed, 'file')} removed ({_size(self.freed)})")
        if self.spared:
            parts.append(f"no file removed: {self.spared}")
        return f"{self.name}: {', '.join(parts) or 'nothing to do'}"

    @property
    def anything(self) -> bool:
        """Whether there is something to report."""
        return bool(self.days or self.snapshots or self.states or self.removed or self.spared)


def networks_of(database: Database) -> list[str]:
    """List every network that the lake holds."""
    with database.read() as connection:
        return list(connection.execute(select(networks.c.network).order_by(networks.c.network)).scalars())


def tidy(
    settings: Settings,
    database: Database,
    network: str,
    limits: Limits,
    run_id: str,
    *,
    confirmed: bool = False,
) -> list[MaintenanceResult]:
    """Expire, forget and remove what the limits say of one network; what was done, by table.

    Raises:
        PermalakeError: if most files would be removed and the caller has not ``confirmed`` that.
    """
    with alone(settings, database, network, run_id) as work:
        done, present = _by_table(database, network)
        for (catalog, table), location in present.items():
            try:
                if expirable(location, limits):
                    done[table].snapshots = expire(work, table, limits, catalog)
            except UnreadableTableError as damaged:
                done[table].spared = str(damaged)
        with database.write() as connection:
            _count_states(done, history.forget(connection, network, limits))
            history.close(connection, network, limits)
            history.repoint_served(connection, network)
        write_log(settings, database)
        unneeded = orphans(settings, database, network, limits)
        if not confirmed:
            check_share(network, unneeded)
        _count_files(done, network, unneeded)
        for files in unneeded.files.values():
            remove(settings.lake.warehouse, files)
    return list(done.values())


def would_tidy(
    settings: Settings, database: Database, network: str, tables: Collection[str], limits: Limits
) -> list[MaintenanceResult]:
    """Return what :func:`tidy` would do now, and the days that would be compacted; change nothing."""
    done, present = _by_table(database, network)
    with database.read() as connection:
        _count_states(done, history.past_states(connection, network, limits)[1])
    for (_, table), location in present.items():
        try:
            done[table].snapshots = expirable(location, limits)
        except UnreadableTableError as damaged:
            done[table].spared = str(damaged)
    for table, days in fragmented_tables(database, network, tables, settings.lake.target_bytes).items():
        done[table].days = len(days)
        done[table].files_before = sum(len(files) for files in days.values())
    _count_files(done, network, orphans(settings, database, network, limits))
    return list(done.values())


def clear_landings(
    settings: Settings, database: Database, limits: Limits, dry_run: bool = False
) -> MaintenanceResult:
    """Delete what attempts that are over had landed for themselves."""
    done = MaintenanceResult(LANDINGS)
    for attempt_id, files in landings(settings, database, limits).items():
        done.removed += len(files)
        done.freed += sum(file.size for file in files)
        if not dry_run:
            remove_folder(f"{settings.lake.warehouse}/{LANDINGS}/{attempt_id}")
    return done


def _by_table(
    database: Database, network: str
) -> tuple[dict[str, MaintenanceResult], dict[tuple[str, str], str]]:
    """Return an empty result by table, and where each table lies, by catalog and table."""
    with database.read() as connection:
        present = {
            (catalog, table): location
            for catalog in (PUBLISHED, STORES)
            for table, location in locations(connection, catalog, network).items()
        }
    return {table: MaintenanceResult(f"{network}.{table}") for _, table in sorted(present)}, present


def _count_states(done: dict[str, MaintenanceResult], forgotten: list[PastState]) -> None:
    for state in forgotten:
        done[state.table].states += 1


def _count_files(done: dict[str, MaintenanceResult], network: str, unneeded: Orphans) -> None:
    for table, files in unneeded.files.items():
        result = done.setdefault(table, MaintenanceResult(f"{network}.{table}"))
        result.removed, result.freed = len(files), sum(file.size for file in files)
    for table, reason in unneeded.spared.items():
        done.setdefault(table, MaintenanceResult(f"{network}.{table}")).spared = reason


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _size(size: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"
        size /= 1024
    return f"{size:,.1f} TiB"
