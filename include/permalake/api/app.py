"""The application: routers of the domains, with what holds for all of them."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from anyio.to_thread import current_default_thread_limiter
from fastapi import Depends, FastAPI
from starlette.routing import Mount

from permalake.api.analytics import router as analytics
from permalake.api.at_once import AtOnce
from permalake.api.compression import compressed
from permalake.api.cors import ApiCors
from permalake.api.docs import add_docs
from permalake.api.health import router as health
from permalake.api.iceberg import router as iceberg
from permalake.api.lenient_requests import LenientRequests
from permalake.api.limits import HEALTH_SLOTS, RequestLimits
from permalake.api.operations import router as operations
from permalake.api.pages import router as pages
from permalake.api.pages import style_router as style
from permalake.api.publications import router as publications
from permalake.api.quality import add_data_docs
from permalake.api.quality import router as quality
from permalake.api.refresh import keep_fresh
from permalake.api.schema import add_schema
from permalake.config import Settings
from permalake.domains import DOMAINS, domain_of, stores_of
from permalake.lake.identity import open_database
from permalake.lake.serving import LakeReader
from permalake.lake.status import status
from permalake.pages.metrics import ApiMetrics, LakeMetrics
from permalake.pages.metrics import router as metrics
from permalake.stores.readers import StoreReaders
from permalake.version import VERSION
from permalake.web.problems import add_handlers
from permalake.web.responses import edition
from permalake.web.state import of_network

_ABOUT = (
    "History of IOTA networks and of Wormhole from a Permalake lake; each answer is of one published state. "
    "HEAD is answered wherever GET is."
)


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
    days = LakeMetrics(
        partial(status, app.state.database),
        lambda network: [store.name for store in stores_of(settings, network)],
    )
    app.state.metrics = ApiMetrics(days, lake, stores)
    add_handlers(app)
    app.include_router(metrics)
    app.include_router(style)
    add_docs(app)
    add_data_docs(app)
    app.include_router(health)
    app.include_router(analytics)
    app.include_router(publications)
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
    for own in (quality, operations, pages):
        app.include_router(own)
    add_schema(app)
    _add_middleware(app, settings, AtOnce(app, settings, lake, mounts))
    return app


def _add_middleware(app: FastAPI, settings: Settings, at_once: AtOnce) -> None:
    """Add what surrounds every request; the last one added is the outermost."""
    app.add_middleware(compressed)
    app.add_middleware(
        RequestLimits,
        settings=settings.serve,
        networks=tuple(settings.networks),
        metrics=app.state.metrics,
        at_once=at_once,
    )
    app.add_middleware(ApiCors, settings=settings.serve)
    folders = [f"{settings.serve.root_path}{route.path}" for route in app.routes if isinstance(route, Mount)]
    app.add_middleware(LenientRequests, folders=folders)
