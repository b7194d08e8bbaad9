"""Entries of the feed of publications: the changes of each, day by day, with rows and digests.

Where a lake is signed, a publication is told when it is: what was told without digests is not told again. The
signature may come after later publications: a day is told as it was then, which those after it tell again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from itertools import takewhile

from sqlalchemy import Connection, RowMapping, select

from permalake.config import Settings
from permalake.lake.identity import catalog_id
from permalake.lake.publication_log import LoggedDay, read_logged
from permalake.lake.state import clock, moment, publication_tables, signed_logs, stamp
from permalake.transparency.copies import LakeCopy, read_manifest
from permalake.transparency.documents import FeedDay, FeedEntry, FeedWithdrawn, FeedWithheld
from permalake.transparency.log import Entry
from permalake.transparency.manifest import KINDS_WITH_DAYS
from permalake.transparency.places import FolderPlace
from permalake.transparency.served import ServedLog, served_log
from permalake.transparency.signing import FOLDER

GRACE = timedelta(minutes=10)
"""A publication waits as long for its signature: a publisher may have lost the key."""


def ready(connection: Connection, rows: Sequence[RowMapping], own_run: str = "") -> list[RowMapping]:
    """Return those of some publications, in order, that come before the first that waits to be signed.

    In a lake that was never signed none waits, nor do those of ``own_run``, which has tried to sign them.
    """
    of_lake = signed_logs.c.origin.endswith(f"/{catalog_id(connection)}", autoescape=True)
    if connection.execute(select(signed_logs.c.origin).where(of_lake)).first() is None:
        return list(rows)
    since = stamp(moment(clock(connection)) - GRACE)

    def waits(row: RowMapping) -> bool:
        is_due = row["signed"] is None and row["kind"] in KINDS_WITH_DAYS and row["run_id"] != own_run
        return is_due and row["published_at"] > since

    return list(takewhile(lambda row: not waits(row), rows))


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
    log = served_log(settings.lake.warehouse) if rows else None
    return [
        {
            "number": row["id"],
            "time": row["published_at"],
            "kind": row["kind"],
            "network": row["network"],
            "start": str(row["start"]),
            "end": str(row["end"]),
            "tables": sorted(tables.get(row["id"], ())),
            "days": _days(settings, copy, log, row) if row["kind"] in KINDS_WITH_DAYS else [],
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


def _days(settings: Settings, copy: LakeCopy, log: ServedLog | None, row: RowMapping) -> list[FeedDay]:
    """Return the days of a publication, each as it was signed with it, or as its own file has it."""
    described_days = []
    for day in read_logged(settings, row["id"])["days"]:
        entry = log.entry_at(row["network"], day["date"], row["signed"] or 0) if log else None
        if entry is not None:
            described_days.append(_as_signed(copy, entry))
        elif day["published_at"] is not None:
            described_days.append(_as_logged(day))
    return described_days


def _as_signed(copy: LakeCopy, entry: Entry) -> FeedDay:
    tables = read_manifest(copy, entry)["tables"]
    return {
        "date": entry.date,
        "manifest": entry.manifest,
        "tables": {name: {"rows": said["rows"], "digest": said["digest"]} for name, said in tables.items()},
    }


def _as_logged(day: LoggedDay) -> FeedDay:
    tables = json.loads(day["rows"] or "{}")
    return {
        "date": day["date"],
        "manifest": None,
        "tables": {name: {"rows": rows, "digest": None} for name, rows in tables.items()},
    }
