"""The application: routers of the domains, with what holds for all of them."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anyio.to_thread import current_default_thread_limiter
from fastapi import Depends, FastAPI
from starlette.routing import Mount

from permalake.api.analytics import router as analytics
from permalake.api.at_once import AtOnce
from permalake.api.catalogue import router as catalogue
from permalake.api.compression import compressed
from permalake.api.cors import ApiCors
from permalake.api.docs import add_docs
from permalake.api.health import router as health
from permalake.api.iceberg import router as iceberg
from permalake.api.lenient_requests import LenientRequests
from permalake.api.limits import HEALTH_SLOTS, RequestLimits
from permalake.api.pages import router as pages
from permalake.api.proofs import router as proofs
from permalake.api.publications import router as publications
from permalake.api.quality import router as quality
from permalake.api.refresh import keep_fresh
from permalake.api.schema import add_schema
from permalake.api.signed_days import router as signed_days
from permalake.api.sql import router as sql
from permalake.api.sql import takes_sql
from permalake.config import Settings
from permalake.domains import DOMAINS, domain_of, stores_of
from permalake.lake.identity import open_database
from permalake.lake.serving import LakeReader
from permalake.pages.files import DATA_DOCS
from permalake.pages.metrics import ApiMetrics
from permalake.pages.routers import ROUTERS
from permalake.query_process import prepare
from permalake.stores.readers import StoreReaders
from permalake.version import VERSION
from permalake.web.problems import add_handlers
from permalake.web.responses import edition
from permalake.web.state import of_network

_ABOUT = (
    "History of IOTA networks and of Wormhole from a Permalake lake; each answer is of one published state. "
    "HEAD is answered wherever GET is."
)

_GROUPS = {
    "analytics": "Tables and views of every network, in pages of JSON or whole as CSV, Parquet or Arrow; the "
    "feed of publications.",
    "iceberg": "A read-only Iceberg REST catalog, pinned to a publication.",
    "service": "Whether the server answers, and its metrics.",
}


def create_app(settings: Settings, reader: LakeReader | None = None) -> FastAPI:
    """Return the application over the configured lake.

    Args:
        settings: The configuration.
        reader: The lake; opened when not given. It is closed with the application.
    """
    lake = reader or LakeReader(settings, domain_of, settings.serve.lake_pool)
    stores = StoreReaders(
        settings,
        {name: store.name for name in settings.namespaces for store in stores_of(settings, name)},
    )

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        # Handlers run in threads: as many as requests are answered at once.
        current_default_thread_limiter().total_tokens = settings.serve.concurrency + HEALTH_SLOTS
        ended = threading.Event()
        checker = threading.Thread(target=keep_fresh, args=(lake, stores, ended), name="refresh", daemon=True)
        checker.start()
        if takes_sql(settings.serve):
            prepare()
        yield
        ended.set()
        checker.join()
        stores.close()
        lake.close()

    app = FastAPI(
        title="Permalake",
        version=VERSION,
        description=_ABOUT,
        lifespan=life,
        openapi_tags=[
            {"name": name, "description": text}
            for groups in (_GROUPS, *(domain.route_groups for domain in DOMAINS))
            for name, text in groups.items()
        ],
        servers=[{"url": settings.serve.root_path}] if settings.serve.root_path else None,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        root_path=settings.serve.root_path,
    )
    app.state.settings = settings
    app.state.reader = lake
    app.state.edition = edition(settings, lake.lake_id)
    app.state.stores = stores
    app.state.database = open_database(settings, settings.serve.catalog_wait)
    app.state.takes_sql = takes_sql(settings.serve)
    app.state.sections = ("data", "quality", "verify", "operations")
    app.state.metrics = ApiMetrics(app.state, lake, stores)
    add_handlers(app)
    for shared in ROUTERS:  # before the folder of static files that the style sheet's path lies in
        app.include_router(shared)
    add_schema(app)
    add_docs(app)
    app.include_router(health)
    app.include_router(analytics)
    app.include_router(sql)
    app.include_router(publications)
    app.include_router(proofs)
    app.include_router(iceberg)
    mounts = [mount for domain in DOMAINS for mount in domain.mounts(settings)]
    for mount in mounts:
        app.include_router(
            mount.router,
            prefix=mount.prefix,
            dependencies=[Depends(of_network(mount.network))],
            include_in_schema=mount.documented,
        )
    # Last: /{network} must not hide another route.
    for module in (quality, signed_days, catalogue, pages):
        app.include_router(module)
    _add_middleware(app, settings, AtOnce(app, settings, lake, mounts))
    return app


def _add_middleware(app: FastAPI, settings: Settings, at_once: AtOnce) -> None:
    """Add what surrounds every request; the last one added is the outermost."""
    app.add_middleware(compressed)
    app.add_middleware(
        RequestLimits,
        settings=settings.serve,
        networks=settings.namespaces,
        metrics=app.state.metrics,
        at_once=at_once,
    )
    app.add_middleware(ApiCors, settings=settings.serve)
    mounted = (route.path for route in app.routes if isinstance(route, Mount))
    folders = [f"{settings.serve.root_path}{path}" for path in (DATA_DOCS, *mounted)]
    app.add_middleware(LenientRequests, folders=folders)
