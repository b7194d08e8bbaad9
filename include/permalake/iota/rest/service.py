"""``/{net}/health`` and ``/{net}/api/routes`` (TIP-25)."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response
from typing_extensions import TypedDict

from permalake.web.answers import answer
from permalake.web.head import UNHEALTHY, health_of
from permalake.web.paging import Nothing
from permalake.web.problems import documented
from permalake.web.state import PublishedLake

router = APIRouter(tags=["service"])
_PLUGINS = {
    "stardust": ["core/v2", "indexer/v1", "explorer/v2", "poi/v1"],
    "chrysalis": ["core/v1", "indexer/v1", "poi/v1"],
}


class NodeRoutes(TypedDict):
    """The routes that a network has."""

    routes: list[str]


@router.get("/health", response_class=Response, responses=UNHEALTHY)
def health(lake: PublishedLake) -> Response:
    """Answer 200 once a day of the network is published and its store answers, else 503, never by its age.

    Headers have the end of its live head.
    """
    return health_of(lake, "date_cache")


@router.get("/api/routes", responses={**documented(), **answer(NodeRoutes)})
def routes(lake: PublishedLake, query: Nothing) -> Response:  # noqa: ARG001
    """Return the routes of the network, as a Stardust node lists those of its plugins."""
    return lake.current({"routes": _PLUGINS[lake.settings.network(lake.network).protocol]})
