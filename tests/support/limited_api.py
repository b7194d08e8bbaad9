"""A small lake behind the API with limits of a test's own, and routes that take long, fail or read a body."""

from __future__ import annotations

import time

from fastapi import APIRouter, Depends
from starlette.responses import Response

from permalake.api.app import create_app
from permalake.config import Settings
from permalake.domains import domain_of
from permalake.lake.serving import EVERYTHING, LakeReader
from permalake.web.mount import Mount
from permalake.web.state import PublishedLake, of_network
from support import lakes

NETWORKS = {"shimmer": {"protocol": "stardust", "bech32_hrp": "smr", "path": "."}}
slow = APIRouter(include_in_schema=False)


@slow.get("/slow")
def slow_query(lake: PublishedLake) -> Response:
    """Count what takes for ever."""
    lake.rows("SELECT count(*) FROM range(1000000) a, range(1000000) b, messages", messages=EVERYTHING)
    return Response()


@slow.get("/nap")
def nap(lake: PublishedLake, seconds: float = 0.3) -> Response:
    """Hold a slot for a moment."""
    time.sleep(seconds)
    return Response()


@slow.get("/large")
def large() -> Response:
    """Answer with more than the kernel buffers."""
    return Response(bytes(8_000_000))


@slow.get("/broken")
def broken(lake: PublishedLake) -> Response:
    """Fail as no handler should."""
    raise RuntimeError("SELECT secret FROM /var/lib")


@slow.post("/echo")
def echo(body: dict[str, str]) -> Response:
    """Read a body."""
    return Response(str(len(body)))


def build(folder) -> None:
    """Publish a day into ``folder``."""
    settings = Settings(lake={"warehouse": str(folder / "lake")}, networks=NETWORKS)  # type: ignore[arg-type]
    lakes.build(settings, lakes.OpenLake(settings), lakes.DAY1, 1, 3, "first")


def application(folder, **serve):
    """Return the API over that lake; ``serve``: keys of ``[serve]``."""
    settings = Settings(
        lake={"warehouse": str(folder / "lake")},  # type: ignore[arg-type]
        networks=NETWORKS,  # type: ignore[arg-type]
        wormhole={"path": str(folder)},  # type: ignore[arg-type]
        serve=serve,  # type: ignore[arg-type]
    )
    app = create_app(settings, LakeReader(settings, domain_of, cache=folder / "index"))
    mount = Mount("/shimmer", slow, "shimmer")
    app.include_router(mount.router, prefix=mount.prefix, dependencies=[Depends(of_network(mount.network))])
    return app
