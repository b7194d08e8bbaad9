"""Where the Wormhole routes stand. Whoever adds a router adds a line to ``_ROUTERS``."""

from __future__ import annotations

from fastapi import APIRouter

from permalake.config import Settings
from permalake.web.mount import Mount
from permalake.wormhole.contracts.tables import NAMESPACE
from permalake.wormhole.rest import (
    account_page,
    edb_routes,
    guardian_page,
    list_pages,
    message_routes,
    not_served,
    pages,
    part_pages,
    service,
    wormholescan_figures,
    wormholescan_lists,
)

_ROUTERS: tuple[tuple[str, APIRouter], ...] = (
    ("/api/wormhole/v1", message_routes.router),
    ("/wormhole", service.router),
    ("/wormhole", wormholescan_lists.router),
    ("/wormhole", wormholescan_figures.router),
    ("/wormhole", not_served.wormholescan),
    ("/wormhole/edb", edb_routes.router),
    ("/wormhole/edb", not_served.event_database),
    ("/wormhole", pages.router),
    ("/wormhole", part_pages.router),
    ("/wormhole", account_page.router),
    ("/wormhole", guardian_page.router),
    ("/wormhole", list_pages.router),
)
"""Prefix and router."""


def mounts(settings: Settings) -> tuple[Mount, ...]:
    """Return the routers; none where Wormhole is not configured."""
    if settings.wormhole is None:
        return ()
    return tuple(Mount(prefix, router, NAMESPACE) for prefix, router in _ROUTERS)
