"""Putting staged files on top of what others published meanwhile."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import date

from pyiceberg.expressions import In
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table as IcebergTable

from permalake.config import Settings
from permalake.errors import PermalakeError
from permalake.lake.catalog import copy_pointers, drop_pointers, open_catalog, open_table
from permalake.lake.counts import day_of, days_between, files
from permalake.lake.state import Database

Belongs = Callable[[date], bool]


def replay(
    settings: Settings,
    database: Database,
    network: str,
    tables: dict[str, tuple[str, str]],
    start: date,
    end: date,
    belongs: Belongs,
) -> dict[str, str]:
    """New metadata for ``tables`` (name -> (current location, staged location)): as current, but with the
    staged files on the days of start..end for which ``belongs`` says yes. Nobody sees it yet.

    Returns name -> metadata location. No data is read or written, and a table that already has exactly the
    staged files keeps its location.
    """
    private = f"replay_{uuid.uuid4().hex[:12]}"
    with database.write() as connection:
        copy_pointers(connection, private, network, {name: at for name, (at, _) in tables.items()})
    try:
        catalog = open_catalog(settings, private)
        moved = {}
        for name, (_, staged) in tables.items():
            wanted = _files_of(open_table(staged), start, end, belongs)
            table = catalog.load_table((network, name))
            _replace_files(table, wanted, start, end, belongs)
            moved[name] = table.metadata_location
        catalog.close()
    finally:
        with database.write() as connection:
            drop_pointers(connection, private)
    return moved


def _files_of(table: IcebergTable, start: date, end: date, belongs: Belongs) -> dict[str, DataFile]:
    found = files(table, days_between(start, end))
    return {file.file_path: file for file in found if belongs(day_of(file))}


def _replace_files(
    table: IcebergTable, wanted: dict[str, DataFile], start: date, end: date, belongs: Belongs
) -> None:
    present = _files_of(table, start, end, belongs)
    if present.keys() == wanted.keys():
        return
    with table.transaction() as transaction:
        if present:
            # By day and not by file: the delete drops whole files on partition bounds alone, and prunes
            # the manifests of all other days.
            with transaction.update_snapshot().delete() as delete:
                delete.delete_by_predicate(
                    In("date", {day_of(file).isoformat() for file in present.values()})
                )
        if wanted:
            # A merging append, so that manifests do not pile up however often days are replayed.
            with transaction.update_snapshot().merge_append() as append:
                for file in wanted.values():
                    append.append_data_file(file)
    after = _files_of(table, start, end, belongs)
    if after.keys() != wanted.keys():
        raise PermalakeError(
            f"{table.name()[-1]}: replaying the staged files gave other files; run the day again"
        )
