"""``/api/publications``: the feed of publications, for whoever keeps a copy up to date."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import Field
from sqlalchemy import func, select
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from typing_extensions import TypedDict

from permalake.api.limits import FEED
from permalake.lake.serving import LakeReader
from permalake.lake.state import publications
from permalake.transparency.documents import FeedEntry
from permalake.transparency.feed import described, ready, tables_of
from permalake.web.answers import Count, DayText, UtcTime, answer
from permalake.web.paging import LIMIT, NoQuery, items_of_page
from permalake.web.parameter_types import FormNetwork
from permalake.web.problems import documented
from permalake.web.responses import current_json

MOST_SECONDS = 30
_LOOK_SECONDS = 0.25

router = APIRouter(tags=["analytics"])


class _FeedQuery(NoQuery):
    since: int = Field(0, ge=0, le=2**62, description="Number of the last publication that is known.")
    network: FormNetwork = Field(None, description="Only of this network.")
    limit: int = Field(100, ge=1, description=f"Publications of an answer. {LIMIT}")
    wait: int = Field(
        0, ge=0, le=MOST_SECONDS, description="Seconds to wait for the next one, if there is none."
    )


class ChangedTable(TypedDict):
    """A day of a table as it is now; the digest is null where it is not signed."""

    rows: Count
    digest: str | None


class ChangedDay(TypedDict):
    """A publication's changes to a day; the digest of its manifest is null where it is not signed."""

    date: DayText
    manifest: str | None
    tables: dict[str, ChangedTable]


class WithdrawnDay(TypedDict):
    """The tables that lost all rows of a day."""

    date: DayText
    tables: list[str]


class WithheldDay(TypedDict):
    """A day that stays as it was, with the reason."""

    date: DayText
    reason: str


class PublicationEntry(TypedDict):
    """A publication: what it changed, by day and table; null is what its release did not record."""

    number: Count
    time: UtcTime
    kind: str
    network: str
    start: DayText
    end: DayText
    tables: list[str]
    days: list[ChangedDay]
    withdrawn: list[WithdrawnDay] | None
    withheld: list[WithheldDay] | None


class PublicationFeed(TypedDict):
    """Publications in order; ``next`` is what to ask for since."""

    publications: list[PublicationEntry]
    next: Count


@router.get(FEED, responses={**documented(), **answer(PublicationFeed)})
async def feed(request: Request, query: Annotated[_FeedQuery, Query()]) -> Response:
    """List publications after one: what each changed, day by day, with rows and digests.

    Who applies them in order has the published state: of a network's day, the last word counts, and tables
    that it does not name have no rows. ``withdrawn`` names the tables that lost all rows of a day,
    ``withheld`` the days that stay as they were, with the reason; both are null for publications of releases
    that did not record it. Digests are null where the lake is not signed (docs/digests.md). Where it is, a
    publication is listed when it is signed, or after ten minutes without digests.
    """
    reader: LakeReader = request.app.state.reader
    limit = items_of_page(request.app.state.settings.serve, query.limit)
    until = time.monotonic() + query.wait
    last, entries = query.since, list[FeedEntry]()
    while True:
        served = reader.snapshot().publication
        if served > last:  # What others published meanwhile wakes nobody who asked for one network.
            entries, reached = await run_in_threadpool(_publications, request, query, last, served, limit)
            last = entries[-1]["number"] if len(entries) == limit else max(last, reached)
        if entries or time.monotonic() >= until or await request.is_disconnected():
            return current_json(request, None, {"publications": entries, "next": last})
        await asyncio.sleep(_LOOK_SECONDS)


def _publications(
    request: Request, asked: _FeedQuery, since: int, served: int, limit: int
) -> tuple[list[FeedEntry], int]:
    """Return publications up to the last that has its file and waits for no signature, and that one's number.

    One whose process was killed after its commit gets its file with the next one, or by maintenance.
    """
    logged = select(func.max(publications.c.id)).where(publications.c.logged.is_not(None))
    with request.app.state.database.read() as connection:
        last = min(served, connection.execute(logged).scalar() or 0)
        query = select(publications).where(publications.c.id > since, publications.c.id <= last)
        if asked.network is not None:
            query = query.where(publications.c.network == asked.network)
        rows = connection.execute(query.order_by(publications.c.id).limit(limit)).mappings().all()
        listed = ready(connection, rows)
        if len(listed) < len(rows):
            last = rows[len(listed)]["id"] - 1
        tables = tables_of(connection, listed)
    return described(request.app.state.settings, listed, tables), last
