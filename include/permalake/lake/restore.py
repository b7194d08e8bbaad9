"""Building a lost catalog again from the log of publications in the warehouse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date

from sqlalchemy import Connection, insert, select, text

from permalake.config import Settings
from permalake.contracts import QUARANTINE
from permalake.errors import PermalakeError
from permalake.lake import record
from permalake.lake.catalog import (
    UnreadableTableError,
    locations,
    open_table,
    put_pointer,
    read_manifests,
)
from permalake.lake.counts import rows_per_day
from permalake.lake.database import Database
from permalake.lake.fixed_settings import put_fixed_settings
from permalake.lake.identity import catalog_id, check_places, set_catalog_id, warehouse_id
from permalake.lake.publication_log import LoggedPublication, logged_ids, read_logged
from permalake.lake.published import last_publication
from permalake.lake.state import PUBLISHED, days, networks, publication_tables, publications, upsert
from permalake.lake.warehouse_files import RUNBOOK
from permalake.spark.catalog_database import catalog_url

_DAY_COLUMNS = set(days.columns.keys()) - {"network", "date"}


@dataclass
class RestoredNetwork:
    """The restored parts of one network; ``damaged``: tables whose current state cannot be read, and why."""

    network: str
    publications: int = 0
    days: set[date] = field(default_factory=set)
    tables: set[str] = field(default_factory=set)
    damaged: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the line for a user."""
        counts = f"{self.publications} publications, {len(self.days)} days, {len(self.tables)} tables"
        return f"{self.network}: {counts}"


def restore(settings: Settings) -> list[RestoredNetwork]:
    """Add the publications that only the warehouse knows to the catalog: all, if the catalog is empty.

    Tables point where they did after the last publication. Attempts that were not published, stale marks and
    the state of the stores are not in the warehouse.

    Raises:
        PermalakeError: if catalog and warehouse are of two lakes, or the warehouse has nothing new.
    """
    database = Database(catalog_url(settings))
    with database.write() as connection:
        done = rebuild(settings, connection)
    for network in done:
        check_restored(database, network)
    return done


def rebuild(settings: Settings, connection: Connection) -> list[RestoredNetwork]:
    """Add the publications to the catalog, in the caller's transaction; raises as :func:`restore` does."""
    _take_id(settings, connection)
    newest = last_publication(connection)
    documents = [read_logged(settings, number) for number in logged_ids(settings, newest)]
    if not documents:
        raise PermalakeError(
            f"the warehouse {settings.lake.warehouse} has no publication that the catalog lacks;  "
            f"nothing to restore, see {RUNBOOK}"
        )
    done = _apply(connection, documents)
    check_places(connection, settings.lake.warehouse)
    if connection.dialect.name == "postgresql":  # its counter does not follow given numbers
        connection.execute(
            text("SELECT setval(pg_get_serial_sequence('permalake_publications', 'id'), :last)"),
            {"last": documents[-1]["id"]},
        )
    return done


def _take_id(settings: Settings, connection: Connection) -> None:
    recorded, stored = catalog_id(connection), warehouse_id(settings)
    if stored is None:
        raise PermalakeError(
            f"the warehouse {settings.lake.warehouse} has no lake id; correct lake.warehouse, or restore the "
            f"catalog from its backup, see {RUNBOOK}"
        )
    if recorded is None:
        if connection.execute(select(publications.c.id)).first():
            raise PermalakeError(
                f"the catalog holds publications but no lake id; restore into an empty one, see {RUNBOOK}"
            )
        set_catalog_id(connection, stored)
    elif recorded != stored:
        raise PermalakeError(
            f"the catalog is of lake {recorded}, the warehouse of lake {stored}; restore into an empty "
            f"database, see {RUNBOOK}"
        )


def _apply(connection: Connection, documents: Sequence[LoggedPublication]) -> list[RestoredNetwork]:
    done: dict[str, RestoredNetwork] = {}
    for document in documents:
        network = document["network"]
        restored = done.setdefault(network, RestoredNetwork(network))
        restored.publications += 1
        columns = {name: value for name, value in document.items() if name in publications.c}
        span = {"start": date.fromisoformat(document["start"]), "end": date.fromisoformat(document["end"])}
        connection.execute(insert(publications).values(**(columns | span), logged=1))
        for table, location in document["tables"].items():
            restored.tables.add(table)
            connection.execute(
                insert(publication_tables).values(
                    publication_id=document["id"],
                    network=network,
                    table_name=table,
                    metadata_location=location,
                )
            )
            put_pointer(connection, PUBLISHED, network, table, location)
        put_fixed_settings(connection, network, document.get("settings", {}))
        for values in document["days"]:
            day = date.fromisoformat(values["date"])
            restored.days.add(day)
            kept = {name: value for name, value in values.items() if name in _DAY_COLUMNS}
            record.set_day(connection, network, day, **kept)
    for network in done:
        horizons = [document["history_from"] for document in documents if document["network"] == network]
        history_from = max(filter(None, horizons), default=None)
        upsert(connection, networks, {"network": network}, {"history_from": history_from}, {"turn": 0})
    return list(done.values())


def check_restored(database: Database, restored: RestoredNetwork) -> None:
    """Open every table as it is now, and count the quarantine of its days again."""
    with database.read() as connection:
        current = locations(connection, PUBLISHED, restored.network)
    for table in sorted(restored.tables):
        try:
            opened = open_table(current[table])
            if snapshot := opened.current_snapshot():
                read_manifests(opened, snapshot)
            if table == QUARANTINE.name:
                _count_quarantined(database, restored.network, current[table])
        except UnreadableTableError as error:
            restored.damaged[table] = str(error)


def _count_quarantined(database: Database, network: str, location: str) -> None:
    counted = rows_per_day(location, date(1970, 1, 1), date.max)
    with database.write() as connection:
        recorded_days = record.known_days(connection, network, date(1970, 1, 1), date.max)
        for day in recorded_days | set(counted):
            record.set_day(connection, network, day, quarantined=counted.get(day, 0))
