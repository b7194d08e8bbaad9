"""Where the routes of an IOTA network stand: under the contract's prefixes and under node-like ones.

Whoever adds a router adds a line to ``_STARDUST`` or ``_CHRYSALIS``.
"""

from __future__ import annotations

from fastapi import APIRouter

from permalake.config import Settings
from permalake.iota.rest import (
    addresses,
    core_v1,
    core_v2,
    explorer,
    explorer_ledger,
    explorer_pages,
    indexer,
    list_pages,
    messages,
    not_served,
    permanode,
    proofs,
    service,
)
from permalake.web.mount import Mount

_BOTH: tuple[tuple[str, APIRouter], ...] = (
    ("/{net}", service.router),
    ("/{net}", not_served.plugins),
    ("/{net}/explore", list_pages.router),
)
_PAGES = ("/{net}/explore", explorer_pages.router)
"""Behind the lists: a path of two parts is an id there."""
_EXPLORER = (explorer.router, explorer_ledger.router)
_V2 = (core_v2.router, not_served.core_v2)
_STARDUST: tuple[tuple[str, APIRouter], ...] = (
    ("/{net}/explore", list_pages.stardust),
    _PAGES,
    *(("/{net}/api/core/v2", router) for router in _V2),
    *(
        ("/api/permanode/v1/{net}", router)
        for router in (permanode.router, messages.router, not_served.messages, *_V2)
    ),
    ("/{net}/api/indexer/v1", indexer.stardust),
    ("/api/indexer/v1/{net}", indexer.stardust),
    *(
        (prefix, router)
        for prefix in ("/{net}/api/explorer/v2", "/api/permanode/v1/{net}")
        for router in _EXPLORER
    ),
    ("/{net}/api/poi/v1", proofs.stardust),
    ("/api/poi/v1/{net}", proofs.stardust),
)
_V1 = (messages.router, core_v1.router, addresses.router, not_served.core_v1)
_CHRYSALIS: tuple[tuple[str, APIRouter], ...] = (
    _PAGES,
    *((prefix, router) for prefix in ("/{net}/api/v1", "/{net}/api/core/v1") for router in _V1),
    *(("/api/permanode/v1/{net}", router) for router in (permanode.router, *_V1)),
    ("/{net}/api/indexer/v1", indexer.chrysalis),
    ("/api/indexer/v1/{net}", indexer.chrysalis),
    ("/{net}/api/poi/v1", proofs.chrysalis),
    ("/api/poi/v1/{net}", proofs.chrysalis),
    ("/{net}/api/plugins/poi", proofs.hornet),
)
"""Prefix, with ``{net}`` for the network's name, and router. ``/{net}…`` stands at the root too for
``serve.default_network``."""


def mounts(settings: Settings) -> tuple[Mount, ...]:
    """Return the routers of every configured network."""
    mounted = []
    for name, network in settings.networks.items():
        routers = _STARDUST if network.protocol == "stardust" else _CHRYSALIS
        for prefix, router in (*_BOTH, *routers):
            mounted.append(Mount(prefix.replace("{net}", name), router, name))
            if name == settings.serve.default_network and prefix.startswith("/{net}"):
                mounted.append(Mount(prefix.removeprefix("/{net}"), router, name, documented=False))
    return tuple(mounted)
