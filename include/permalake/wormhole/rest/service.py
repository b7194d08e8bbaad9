"""``/wormhole/health``: whether there is anything to answer from, and how far the live head is."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from permalake.web.head import UNHEALTHY, health_of
from permalake.web.state import PublishedLake

router = APIRouter(tags=["service"])


@router.get("/health", response_class=Response, responses=UNHEALTHY)
def wormhole_health(lake: PublishedLake) -> Response:
    """Answer 200 once a day of Wormhole is published and its store answers, else 503, never by its age.

    Headers have the time of the newest VAA in the live head, and the head's lag.
    """
    return health_of(lake, "message_publication")
