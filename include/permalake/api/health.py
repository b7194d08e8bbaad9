"""``/health``: whether there is anything to answer from."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from permalake.lake.serving import LakeReader

router = APIRouter(tags=["service"])


@router.get(
    "/health",
    status_code=200,
    response_class=Response,
    responses={503: {"description": "No day is published."}},
)
def health(request: Request) -> Response:
    """Answer 200 once a day is published, else 503 (TIP-25). The age of that day does not matter."""
    reader: LakeReader = request.app.state.reader
    return Response(status_code=200 if reader.snapshot().publication else 503)
