"""``/api/publications``: the feed of publications, for whoever keeps a copy up to date."""

from __future__ import annotations

import asyncio
import json
import time
from functools import lru_cache
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import Field
from sqlalchemy import select
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from permalake.api.limits import FEED
from permalake.config import Settings
from permalake.lake.publication_log import read_logged
from permalake.lake.serving import LakeReader
from permalake.lake.state import publication_tables, publications
from permalake.transparency.copies import LakeCopy, read_manifest
from permalake.transparency.log import CHECKPOINT, PUBLIC_KEY, Entry, read_log
from permalake.transparency.notes import VerifierKey
from permalake.transparency.places import FolderPlace
from permalake.transparency.signing import FOLDER
from permalake.web.paging import NoQuery
from permalake.web.problems import documented
from permalake.web.responses import current_json

MOST_SECONDS = 30
_LOOK_SECONDS = 0.25
_DAYS = ("days", "carry")

router = APIRouter(tags=["analytics"])


class _FeedQuery(NoQuery):
    since: int = Field(0, ge=0, le=2**62, description="Number of the last publication that is known.")
    network: str | None = Field(None, max_length=64, description="Only of this network.")
    limit: int = Field(100, ge=1, le=1000, description="Publications of an answer.")
    wait: int = Field(
        0, ge=0, le=MOST_SECONDS, description="Seconds to wait for the next one, if there is none."
    )


@router.get(FEED, responses=documented())
async def feed(request: Request, query: Annotated[_FeedQuery, Query()]) -> Response:
    """List publications after one: what each changed, day by day, with rows and digests.

    Who applies them in order has the published state: of a network's day, the last word counts, and tables
    that it does not name have no rows. Digests are null where the lake is not signed (docs/digests.md).
    """
    reader: LakeReader = request.app.state.reader
    until = time.monotonic() + query.wait
    while reader.snapshot().publication <= query.since and time.monotonic() < until:
        await asyncio.sleep(_LOOK_SECONDS)
    served = reader.snapshot().publication
    found = await run_in_threadpool(_publications, request, query, served)
    last = found[-1]["number"] if len(found) == query.limit else max(served, query.since)
    return current_json(request, None, {"publications": found, "next": last})


def _publications(request: Request, asked: _FeedQuery, served: int) -> list[dict[str, Any]]:
    settings: Settings = request.app.state.settings
    query = select(publications).where(publications.c.id > asked.since, publications.c.id <= served)
    if asked.network is not None:
        query = query.where(publications.c.network == asked.network)
    with request.app.state.database.read() as connection:
        rows = connection.execute(query.order_by(publications.c.id).limit(asked.limit)).mappings().all()
        moved = (
            connection.execute(
                select(publication_tables.c.publication_id, publication_tables.c.table_name).where(
                    publication_tables.c.publication_id.in_([row["id"] for row in rows])
                )
            )
            .tuples()
            .all()
        )
    tables: dict[int, list[str]] = {}
    for number, table in moved:
        tables.setdefault(number, []).append(table)
    copy = LakeCopy(FolderPlace(settings.lake.warehouse), FOLDER, {})
    entries = _entries(settings.lake.warehouse, copy.place.read(f"{FOLDER}/{CHECKPOINT}"))
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
            if row["kind"] in _DAYS
            else [],
        }
        for row in rows
    ]


@lru_cache(maxsize=2)
def _entries(warehouse: str, note: bytes | None) -> dict[tuple[str, int], list[Entry]]:
    """Return the entries of the log by network and publication; ``note`` is its checkpoint, None without."""
    place = FolderPlace(warehouse)
    key = place.read(f"{FOLDER}/{PUBLIC_KEY}") if note else None
    log = read_log(place, FOLDER, [VerifierKey.parse(key.decode())]) if key else None
    found: dict[tuple[str, int], list[Entry]] = {}
    for entry in log.entries if log else ():
        found.setdefault((entry.network, entry.publication), []).append(entry)
    return found


def _days(settings: Settings, copy: LakeCopy, entries: Any, row: Any) -> list[dict[str, Any]]:
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
