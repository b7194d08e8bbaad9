"""``permalake serve``: the REST API."""

from __future__ import annotations

import resource
import socket
import sys
from typing import Annotated

import typer

from permalake.config import load_settings
from permalake.config.serving import ServeSettings
from permalake.errors import PermalakeError

_FILES = 1024
"""Files that a server holds beside its connections: data files, stores, the catalog."""


def command(
    host: Annotated[str | None, typer.Option(metavar="H", help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(metavar="P", min=1, max=65535, help="Port.")] = None,
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=256, help="Processes that answer; default: one per core."),
    ] = None,
    config: Annotated[str | None, typer.Option(metavar="FILE", help="Configuration file.")] = None,
) -> None:
    """Serve the published lake: the API of IOTA nodes and of Wormhole explorers, docs at /docs.

    The section [serve] is optional; routes of nodes and of Wormhole need the network's section in
    permalake.toml. Every answer is of one published state; a new publication is served within seconds.

    Examples:
      permalake serve

      permalake serve --host 0.0.0.0 --port 8080 --workers 4

      curl http://127.0.0.1:8042/shimmer/api/core/v2/info
    """
    settings = load_settings(config)

    from permalake.lake.identity import open_database, warehouse_id

    if warehouse_id(settings) is None:
        raise PermalakeError(
            f"no lake at {settings.lake.warehouse}; build one first (make demo or permalake run)"
        )
    open_database(settings, settings.serve.catalog_wait)
    address = host or settings.serve.host
    number = settings.serve.port if port is None else port
    from permalake.api.workers import WorkersFailedError, serve_by_workers, usable_cores

    section = settings.serve.model_copy(update={"host": address, "port": number})
    settings = settings.model_copy(update={"serve": _within_open_files(section)})
    words = f"serving {settings.lake.warehouse} at http://{address}:{number}, docs at /docs\n"
    try:
        serve_by_workers(
            settings, address, number, workers or usable_cores(), lambda: sys.stderr.write(words)
        )
    except WorkersFailedError:
        raise PermalakeError(_why_not(address, number)) from None


def _why_not(host: str, port: int) -> str:
    """Return why the server does not listen, as far as the address tells."""
    try:
        with socket.create_connection((host, port), 2):
            return (
                f"{host}:{port} is taken: something listens there, maybe a Permalake that `make up` started; "
                f"use that one, or choose another port, as with --port {port % 65535 + 1}"
            )
    except OSError:
        return (
            f"nothing listens at {host}:{port}; the lines above say why; choose others with --host and --port"
        )


def _within_open_files(serve: ServeSettings) -> ServeSettings:
    """Return the settings with as many connections as this process may have files beside the lake's own.

    The limit of open files is raised as far as the process may.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = serve.connections + _FILES
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    room = max(most - _FILES, most // 4)
    if room >= serve.connections:
        return serve
    sys.stderr.write(f"serve.connections is {room}: only {hard} files may be open (`ulimit -n`)\n")
    return serve.model_copy(update={"connections": room})
