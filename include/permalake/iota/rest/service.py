"""``/{net}/health`` and ``/{net}/api/routes`` (TIP-25)."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response
from typing_extensions import TypedDict

from permalake.stores.readers import StoreReaders
from permalake.web.answers import answer
from permalake.web.head import with_head_headers
from permalake.web.paging import NoQuery
from permalake.web.problems import documented
from permalake.web.state import PublishedLake

router = APIRouter(tags=["service"])
_PLUGINS = {
    "stardust": ["core/v2", "indexer/v1", "explorer/v2", "poi/v1"],
    "chrysalis": ["core/v1", "indexer/v1", "poi/v1"],
}
_UNHEALTHY: dict[int | str, dict[str, Any]] = {
    503: {"description": "No day is published, or the store does not answer."}
}


class NodeRoutes(TypedDict):
    """The routes that a network has."""

    routes: list[str]


@router.get("/health", response_class=Response, responses=_UNHEALTHY)
def health(lake: PublishedLake) -> Response:
    """Answer 200 once a day of the network is published and its store answers, else 503, never by its age.

    Headers have the end of its live head.
    """
    stores: StoreReaders = lake.request.app.state.stores
    published = lake.snapshot.days(lake.network, "date_cache")
    response = Response(status_code=200 if published and stores.answer(lake.network) else 503)
    return with_head_headers(lake.request, lake.network, response)


@router.get("/api/routes", responses={**documented(), **answer(NodeRoutes)})
def routes(lake: PublishedLake, query: Annotated[NoQuery, Query()]) -> Response:  # noqa: ARG001
    """Return the routes of the network, as a Stardust node lists those of its plugins."""
    return lake.current({"routes": _PLUGINS[lake.settings.network(lake.network).protocol]})
