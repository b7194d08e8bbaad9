"""Entries of the feed of publications: the changes of each, day by day, with rows and digests."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sqlalchemy import Connection, RowMapping, select

from permalake.config import Settings
from permalake.lake.publication_log import read_logged
from permalake.lake.state import publication_tables
from permalake.transparency.copies import LakeCopy, read_manifest
from permalake.transparency.documents import FeedDay, FeedEntry, FeedWithdrawn, FeedWithheld
from permalake.transparency.log import Entry
from permalake.transparency.places import FolderPlace
from permalake.transparency.served import served_log
from permalake.transparency.signing import FOLDER

KINDS_WITH_DAYS = ("days", "carry")


def tables_of(connection: Connection, rows: Sequence[RowMapping]) -> dict[int, list[str]]:
    """Return the tables that each publication moved, by its number."""
    moved = connection.execute(
        select(publication_tables.c.publication_id, publication_tables.c.table_name).where(
            publication_tables.c.publication_id.in_([row["id"] for row in rows])
        )
    )
    tables: dict[int, list[str]] = {}
    for number, table in moved.tuples():
        tables.setdefault(number, []).append(table)
    return tables


def described(
    settings: Settings, rows: Sequence[RowMapping], tables: dict[int, list[str]]
) -> list[FeedEntry]:
    """Return publications as JSON; ``rows`` are theirs in the catalog, ``tables`` what each moved."""
    copy = LakeCopy(FolderPlace(settings.lake.warehouse), FOLDER, {})
    signed = served_log(settings.lake.warehouse)
    entries = signed.by_publication if signed else {}
    return [
        {
            "number": row["id"],
            "time": row["published_at"],
            "kind": row["kind"],
            "network": row["network"],
            "start": str(row["start"]),
            "end": str(row["end"]),
            "tables": sorted(tables.get(row["id"], ())),
            "days": _days(settings, copy, entries.get((row["network"], row["id"]), ()), row)
            if row["kind"] in KINDS_WITH_DAYS
            else [],
            "withdrawn": _withdrawn(row["withdrawn"]),
            "withheld": _withheld(row["withheld"]),
        }
        for row in rows
    ]


def _withdrawn(column: str | None) -> list[FeedWithdrawn] | None:
    """Return the withdrawn tables by day; None where an earlier release recorded nothing."""
    if column is None:
        return None
    return [{"date": day, "tables": tables} for day, tables in json.loads(column).items()]


def _withheld(column: str | None) -> list[FeedWithheld] | None:
    """Return the withheld days; None where an earlier release recorded nothing."""
    if column is None:
        return None
    return [{"date": day, "reason": reason} for day, reason in json.loads(column).items()]


def _days(settings: Settings, copy: LakeCopy, entries: Sequence[Entry], row: RowMapping) -> list[FeedDay]:
    """Return the days of a publication: as signed, or as the log of publications has them."""
    if entries:
        return [
            {
                "date": entry.date,
                "manifest": entry.manifest,
                "tables": {
                    name: {"rows": said["rows"], "digest": said["digest"]}
                    for name, said in read_manifest(copy, entry)["tables"].items()
                },
            }
            for entry in entries
        ]
    return [
        {
            "date": day["date"],
            "manifest": None,
            "tables": {
                name: {"rows": rows, "digest": None} for name, rows in json.loads(day["rows"] or "{}").items()
            },
        }
        for day in read_logged(settings, row["id"])["days"]
    ]
