"""``/health``: whether there is anything to answer from."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from permalake.lake.serving import LakeReader
from permalake.stores.readers import StoreReaders

router = APIRouter(tags=["service"])


@router.get(
    "/health",
    status_code=200,
    response_class=Response,
    responses={503: {"description": "No day is published, or a store does not answer."}},
)
def health(request: Request) -> Response:
    """Answer 200 if a day is published, of whatever age, and the stores answer, else 503 (TIP-25)."""
    reader: LakeReader = request.app.state.reader
    stores: StoreReaders = request.app.state.stores
    return Response(status_code=200 if reader.snapshot().publication and stores.answer() else 503)
