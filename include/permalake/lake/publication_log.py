"""The log of publications in the warehouse: what `permalake restore` builds a lost catalog from.

Every publication has a file ``_publications/THOUSANDS/ID.json`` with the metadata files that it made
current. Staged metadata files lie beside those in the tables' folders, and nothing else tells them apart.
The files are written after the transaction that publishes; what a killed process did not write, the next one
writes.
"""

from __future__ import annotations

from typing import NotRequired, TypedDict, cast

from sqlalchemy import Connection, RowMapping, select, update

from permalake.config import Settings
from permalake.errors import PermalakeError
from permalake.lake.database import Database
from permalake.lake.fixed_settings import FixedValue, fixed_settings_of
from permalake.lake.identity import catalog_id
from permalake.lake.leases import CARRY
from permalake.lake.published import last_publication
from permalake.lake.state import days, networks, publication_tables, publications
from permalake.lake.warehouse_files import RUNBOOK, entries, read_json, write_json

_FOLDER = "_publications"
_PER_FOLDER = 1000
_FORMAT = 1
# Columns that say what became of the publication later.
_UNLOGGED = frozenset({"logged", "announced", "signed"})


class LoggedDay(TypedDict):
    """A day of a publication, as the table of days has it; times and dates are text."""

    network: str
    date: str
    run_id: str | None
    attempt_id: str | None
    built_at: str | None
    audited: str | None
    failures: str | None
    refused: str | None
    published_at: str | None
    publication_id: int | None
    carried_id: int | None
    rows: str | None
    quarantined: int
    notes: str | None
    gaps: str | None
    stale_reason: str | None


class LoggedPublication(TypedDict):
    """The file of a publication: its row, its days, and the tables' metadata files that it made current."""

    format: int
    lake_id: str | None
    id: int
    kind: str
    network: str
    start: str
    end: str
    run_id: str
    attempt_id: str
    fingerprint: str
    replayed: int
    published_at: str
    withdrawn: str | None
    withheld: str | None
    settings: NotRequired[dict[str, FixedValue]]
    history_from: str | None
    tables: dict[str, str]
    days: list[LoggedDay]


def write_log(settings: Settings, database: Database) -> None:
    """Write the file of every publication that has none, or that maintenance has forgotten in part since."""
    with database.read() as connection:
        lake_id = catalog_id(connection)
        waiting = connection.execute(
            select(publications).where(publications.c.logged.is_(None)).order_by(publications.c.id)
        ).mappings()
        documents = [_document(connection, lake_id, row) for row in waiting]
    for document in documents:
        write_logged(settings, document)
    if documents:
        with database.write() as connection:
            here = publications.c.id.in_([document["id"] for document in documents])
            connection.execute(update(publications).where(here).values(logged=1))


def _document(connection: Connection, lake_id: str | None, row: RowMapping) -> LoggedPublication:
    tables = connection.execute(
        select(publication_tables.c.table_name, publication_tables.c.metadata_location).where(
            publication_tables.c.publication_id == row["id"]
        )
    )
    horizon = select(networks.c.history_from).where(networks.c.network == row["network"])
    is_listed = days.c.publication_id == row["id"]
    if row["kind"] == CARRY:
        is_listed = (days.c.network == row["network"]) & days.c.date.between(row["start"], row["end"])
    published = connection.execute(select(days).where(is_listed).order_by(days.c.date)).mappings()
    document = {
        **{name: value for name, value in row.items() if name not in _UNLOGGED},
        "format": _FORMAT,
        "settings": fixed_settings_of(connection, row["network"]),
        "history_from": connection.execute(horizon).scalar(),
        "lake_id": lake_id,
        "start": str(row["start"]),
        "end": str(row["end"]),
        "tables": dict(tables.tuples().all()),
        "days": [{**day, "date": str(day["date"])} for day in published],
    }
    return cast(LoggedPublication, document)


def _location(settings: Settings, publication_id: int) -> str:
    folder = f"{settings.lake.warehouse}/{_FOLDER}/{publication_id // _PER_FOLDER:06d}"
    return f"{folder}/{publication_id:09d}.json"


def logged_ids(settings: Settings, after: int = 0) -> list[int]:
    """List the ids above ``after`` that have a file, in order."""
    base = f"{settings.lake.warehouse}/{_FOLDER}"
    folders = [name for name, is_folder in entries(base) if is_folder and int(name) >= after // _PER_FOLDER]
    names = [name for folder in folders for name, _ in entries(f"{base}/{folder}") if name.endswith(".json")]
    return sorted(number for name in names if (number := int(name.removesuffix(".json"))) > after)


def read_logged(settings: Settings, publication_id: int) -> LoggedPublication:
    """Read the file of a publication; :class:`PermalakeError` if it is damaged."""
    location = _location(settings, publication_id)
    document = read_json(location)
    if document is None or document.get("format") != _FORMAT or document.get("id") != publication_id:
        raise PermalakeError(f"{location}: is damaged or of a newer version; see {RUNBOOK}")
    return cast(LoggedPublication, document)


def write_logged(settings: Settings, document: LoggedPublication) -> None:
    """Write the file of a publication."""
    write_json(_location(settings, document["id"]), document)


def check_not_behind(settings: Settings, database: Database) -> None:
    """Check that the catalog has every publication that the warehouse lists.

    Raises:
        PermalakeError: if the catalog is an older copy: its numbers would be given twice, and maintenance
            would take later files for needless.
    """
    with database.read() as connection:
        newest = last_publication(connection)
    if unknown := logged_ids(settings, newest):
        with database.read() as connection:  # others may have published since
            newest = last_publication(connection)
        if unknown[-1] > newest:
            raise PermalakeError(
                f"the catalog ends with publication {newest}, the warehouse with {unknown[-1]}: the catalog "
                f"is an older copy; `permalake restore` brings it up to date, see {RUNBOOK}"
            )
