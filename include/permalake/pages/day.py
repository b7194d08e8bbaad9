"""The page of a day: its times, rows, stores, remarks and audit."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response

from permalake.audit import docs
from permalake.config.networks import NetworkName
from permalake.domains import stores_of
from permalake.lake.status import status, times_published
from permalake.pages import SITE
from permalake.pages.days import state_of
from permalake.web.html import page
from permalake.web.page_router import page_router
from permalake.web.paging import PageOptions
from permalake.web.parameter_types import IsoDate
from permalake.web.problems import documented, not_found

router = page_router()


class DayOptions(PageOptions):
    """Parameters of the page."""

    network: NetworkName
    date: IsoDate


@router.get("/day", responses=documented())
def one_day(request: Request, query: Annotated[DayOptions, Query()]) -> Response:
    """Show what the lake knows of a day."""
    days = status(request.app.state.database, query.network)
    day = next((day for day in days if day.date == query.date), None)
    if day is None:
        raise not_found(f"day {query.date} of {query.network}")
    stores = [store.name for store in stores_of(request.app.state.settings, day.network)]
    state = state_of(day, stores)
    index = docs.folder(day.network, day.attempt or "none") / "index.html"
    content = {
        "network": day.network,
        "date": day.date.isoformat(),
        "state": {"name": state.name, "word": state.word, "meaning": state.meaning},
        "error": day.error,
        "codes": list(day.reasons),
        "built": day.built,
        "audited": day.audited,
        "docs": f"/audit/{day.network}/{day.attempt}/index.html" if index.is_file() else None,
        "published": day.published,
        "stores": {name: day.stores.get(name) for name in sorted({*stores, *day.stores})},
        "quarantined": day.quarantined,
        "stale": day.stale,
        "gaps": list(day.gaps),
        "notes": list(day.notes),
        "run": day.run_id,
        "times_published": times_published(request.app.state.database, day.network, day.date),
        "tables": [{"table": name, "rows": count} for name, count in day.rows.items()],
    }
    return page(request, None, "day.html", content, SITE)
