"""Putting staged files on top of what others published meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import date

from pyiceberg.expressions import In
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table as IcebergTable

from permalake.config import Settings
from permalake.errors import PermalakeError
from permalake.lake.catalog import copy_pointers, drop_pointers, locations, open_catalog, open_table
from permalake.lake.counts import day_of, days_between, files
from permalake.lake.database import Database
from permalake.lake.record import AttemptRow, base_locations, replay_catalog
from permalake.lake.state import PUBLISHED

Belongs = Callable[[date], bool]
Moves = dict[str, tuple[str, str]]
"""Table -> (published location, location that it shall have)."""


def staged_moves(
    settings: Settings,
    database: Database,
    attempt: AttemptRow,
    staged: Mapping[str, str],
    withheld: Collection[date] = (),
) -> Moves:
    """Return the staged state itself for tables that stand where the attempt began.

    For the others, and where days are ``withheld``, return the staged files on top of what is published now.
    """
    with database.read() as connection:
        current = locations(connection, PUBLISHED, attempt.network)
        base = base_locations(connection, attempt.attempt_id)
    moves = {name: (current[name], at) for name, at in staged.items()}
    late = {name: move for name, move in moves.items() if withheld or move[0] != base[name]}
    if late:
        moves |= _replay(settings, database, attempt, late, lambda day: day not in withheld)
    return moves


def _replay(
    settings: Settings, database: Database, attempt: AttemptRow, moves: Moves, belongs: Belongs
) -> Moves:
    """Return ``moves`` with new targets: the published state with the staged files on top.

    Only days of the attempt for which ``belongs`` is true are replaced. Nobody sees the new state yet. No
    data is read or written, and a table that already has exactly the staged files keeps its location.
    """
    private = replay_catalog(attempt.attempt_id)
    with database.write() as connection:
        copy_pointers(connection, private, attempt.network, {name: now for name, (now, _) in moves.items()})
    catalog = open_catalog(settings, private)
    replayed = {}
    try:
        for name, (published, staged) in moves.items():
            table = catalog.load_table((attempt.network, name))
            _replace_files(table, open_table(staged), attempt, belongs)
            replayed[name] = (published, table.metadata_location)
    finally:
        catalog.close()
        with database.write() as connection:
            drop_pointers(connection, private)
    return replayed


def _replace_files(table: IcebergTable, staged: IcebergTable, attempt: AttemptRow, belongs: Belongs) -> None:
    replacement = _files_of(staged, attempt, belongs)
    present = _files_of(table, attempt, belongs)
    if present.keys() == replacement.keys():
        return
    exchange(table, present, replacement)
    if _files_of(table, attempt, belongs).keys() != replacement.keys():
        raise PermalakeError(
            f"{attempt.network}.{table.name()[-1]}: replaying the staged files gave other files; run it again"
        )


def exchange(table: IcebergTable, present: dict[str, DataFile], replacement: dict[str, DataFile]) -> None:
    """Commit ``replacement`` in the place of ``present``, which are all files of their days; by path."""
    with table.transaction() as transaction:
        if present:
            # By day and not by file: the delete drops whole files on partition bounds alone, and prunes
            # the manifests of all other days.
            replaced = {day_of(file).isoformat() for file in present.values()}
            with transaction.update_snapshot().delete() as delete:
                delete.delete_by_predicate(In("date", replaced))  # type: ignore[call-arg, arg-type]
        if replacement:
            # A merging append, so that manifests do not pile up however often days are replayed.
            with transaction.update_snapshot().merge_append() as append:
                for file in replacement.values():
                    append.append_data_file(file)


def _files_of(table: IcebergTable, attempt: AttemptRow, belongs: Belongs) -> dict[str, DataFile]:
    data_files = files(table, days_between(attempt.start, attempt.end))
    return {file.file_path: file for file in data_files if belongs(day_of(file))}
