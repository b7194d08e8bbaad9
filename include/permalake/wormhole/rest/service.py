"""``/wormhole/health``: whether there is anything to answer from, and how far the live head is."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from permalake.stores.readers import StoreReaders
from permalake.web.head import with_head_headers
from permalake.web.state import PublishedLake

router = APIRouter(tags=["service"])


@router.get(
    "/health",
    response_class=Response,
    responses={503: {"description": "No day is published, or the store does not answer."}},
)
def wormhole_health(lake: PublishedLake) -> Response:
    """Answer 200 once a day of Wormhole is published and its store answers, else 503, never by its age.

    Headers have the time of the newest VAA in the live head, and the head's lag.
    """
    stores: StoreReaders = lake.request.app.state.stores
    published = lake.snapshot.days(lake.network, "message_publication")
    response = Response(status_code=200 if published and stores.answer(lake.network) else 503)
    return with_head_headers(lake.request, lake.network, response)
