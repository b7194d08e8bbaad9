"""Routes of Wormholescan and of the event database that a lake of finished days cannot answer, and why."""

from __future__ import annotations

import re

from fastapi import APIRouter
from starlette.responses import Response

from permalake.web.problems import documented, not_served
from permalake.wormhole.rest.wormholescan_errors import WormholescanRoute

_LIVE = "the live state of the guardians; a lake of finished days has none"
_REDEMPTIONS = "redemptions on the target chain, which the lake does not hold"
_OTHER = "data that no source of this lake has"
_BATCH = "batches of VAAs, which guardians no longer sign"
_ROWS = "a scan of the event database's cells; query the lake by SQL instead (permalake query)"

WORMHOLESCAN: dict[str, str] = {
    "/v1/heartbeats": _LIVE,
    "/v1/governor/available_notional_by_chain": _LIVE,
    "/v1/governor/enqueued_vaas": _LIVE,
    "/v1/governor/token_list": _LIVE,
    "/v1/signed_batch_vaa/{chain}/{transaction}/{nonce}": _BATCH,
    "/v1/relays": _REDEMPTIONS,
    "/api/v1/governor/{rest:path}": _LIVE,
    "/api/v1/global-tx/{rest:path}": _REDEMPTIONS,
    "/api/v1/relays/{rest:path}": _REDEMPTIONS,
    "/api/v1/native-token-transfer/{rest:path}": _OTHER,
    "/api/v1/protocols/stats": _OTHER,
    "/api/v1/application-activity": _OTHER,
    "/api/v1/supply": _OTHER,
    "/api/v1/supply/{rest:path}": _OTHER,
    "/api/v1/x-chain-activity/tops": _OTHER,
    "/api/v1/top-100-corridors": _OTHER,
}
EVENT_DATABASE: dict[str, str] = {
    "/findvalues": _ROWS,
    "/computetvl": _ROWS,
    "/computetvlmetrics": _ROWS,
    "/computenotionaltransferredto": _ROWS,
}

wormholescan = APIRouter(tags=["wormholescan"], route_class=WormholescanRoute)
event_database = APIRouter(tags=["event database"])


def _refuse(router: APIRouter, path: str, reason: str) -> None:
    def refuse() -> Response:
        raise not_served(f"not served: {reason}")

    refuse.__doc__ = f"Answer 501: it asks for {reason}."
    parts = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "examples": ["2"]}}
        for name in re.findall(r"{(\w+)", path)
    ]
    router.add_api_route(
        path,
        refuse,
        methods=["GET"],
        responses=documented(501),
        operation_id=f"not_served {path}",
        openapi_extra={"parameters": parts} if parts else None,
    )


for _path, _reason in WORMHOLESCAN.items():
    _refuse(wormholescan, _path, _reason)
for _path, _reason in EVENT_DATABASE.items():
    _refuse(event_database, _path, _reason)
