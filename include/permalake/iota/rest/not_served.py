"""Routes of IOTA nodes and of Chronicle that a permanode of published days cannot answer, and why."""

from __future__ import annotations

from fastapi import APIRouter

from permalake.web.not_served import refuse

_SUBMIT = "a submission to the Tangle; this permanode has no peers and only reads"
_TIPS = "tips to attach to; this permanode has no peers and only reads"
_PEERS = "peers, of which a permanode has none"
_CONTROL = "control of a node; this permanode has no database of a node, and only reads"
_WHITE_FLAG = "a computation on the live ledger; the white-flag order of published milestones is theirs"
_EVENTS = "live events (MQTT); published days have none"
_VOTES = "participation events, which no source of this lake has"
_DEBUG = "the inside of a node; a lake has none"
_LOGIN = "a login of Chronicle; tokens of this server are in its configuration (serve.tokens)"

Routes = tuple[tuple[str, str, tuple[str, ...]], ...]
"""Path, reason, methods."""

_NODE: Routes = (
    ("/tips", _TIPS, ("GET",)),
    ("/peers", _PEERS, ("GET", "POST")),
    ("/peers/{peerId}", _PEERS, ("GET", "DELETE")),
    ("/control/{rest:path}", _CONTROL, ("GET", "POST")),
    ("/whiteflag", _WHITE_FLAG, ("POST",)),
)
MESSAGES: Routes = (("/messages", _SUBMIT, ("POST",)),)
"""Beside the messages of either protocol in the permanode's API."""
CORE_V2: Routes = (("/blocks", _SUBMIT, ("POST",)), *_NODE)
"""Under a Stardust node's core API (TIP-25)."""
CORE_V1: Routes = (*MESSAGES, *_NODE)
"""Under a Chrysalis node's API (TIP-13)."""
PLUGINS: Routes = (
    *(
        (f"/api/{name}/{{rest:path}}", reason, ("GET", "POST", "DELETE"))
        for name, reason in (
            ("participation/v1", _VOTES),
            ("plugins/participation", _VOTES),
            ("debug/v1", _DEBUG),
            ("plugins/debug", _DEBUG),
        )
    ),
    ("/api/mqtt/v1", _EVENTS, ("GET",)),
    ("/mqtt", _EVENTS, ("GET",)),
    ("/login", _LOGIN, ("POST",)),
)
"""Beside the core API, under a node's address."""


def _router(routes: Routes) -> APIRouter:
    router = APIRouter(tags=["not served"])
    for path, reason, methods in routes:
        refuse(router, path, reason, methods)
    return router


messages, core_v2, core_v1, plugins = map(_router, (MESSAGES, CORE_V2, CORE_V1, PLUGINS))
