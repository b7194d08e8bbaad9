"""Routes of Wormholescan and of the event database that a lake of finished days cannot answer, and why."""

from __future__ import annotations

from fastapi import APIRouter

from permalake.web.not_served import refuse
from permalake.wormhole.rest.wormholescan_errors import WormholescanRoute

_LIVE = "the live state of the guardians; a lake of finished days has none"
_REDEMPTIONS = "deliveries as their relayers tell them; an operation has its redemption where one is known"
_OTHER = "data that no source of this lake has"
_BATCH = "batches of VAAs, which guardians no longer sign"
_UPKEEP = "the event database's own upkeep; its figures are read by the names without `compute`"
_CUMULATIVE = "sums that grow by the day; those of a period are in the route of the name without `cumulative`"
_ROWS = "a scan of the event database's cells; query the lake by SQL instead (permalake query)"

WORMHOLESCAN: dict[str, str] = {
    "/v1/heartbeats": _LIVE,
    "/v1/governor/{rest:path}": _LIVE,
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
    "/compute{rest:path}": _UPKEEP,
    "/notionaltransferredtocumulative": _CUMULATIVE,
    "/addressestransferredtocumulative": _CUMULATIVE,
}

wormholescan = APIRouter(tags=["wormholescan"], route_class=WormholescanRoute)
event_database = APIRouter(tags=["event database"])


for _path, _reason in WORMHOLESCAN.items():
    refuse(wormholescan, _path, _reason)
for _path, _reason in EVENT_DATABASE.items():
    refuse(event_database, _path, _reason, ("GET", "POST"))
