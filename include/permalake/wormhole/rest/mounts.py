"""Where the Wormhole routes stand. Whoever adds a router adds a line to ``_ROUTERS``."""

from __future__ import annotations

from fastapi import APIRouter

from permalake.config import Settings
from permalake.web.mount import Mount
from permalake.wormhole.contracts.tables import NAMESPACE

_ROUTERS: tuple[tuple[str, APIRouter], ...] = ()
"""Prefix and router."""


def mounts(settings: Settings) -> tuple[Mount, ...]:
    """Return the routers; none where Wormhole is not configured."""
    if settings.wormhole is None:
        return ()
    return tuple(Mount(prefix, router, NAMESPACE) for prefix, router in _ROUTERS)
