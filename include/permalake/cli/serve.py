"""``permalake serve``: the REST API."""

from __future__ import annotations

import gc
import sys
from typing import Annotated

import typer

from permalake.config import load_settings
from permalake.errors import PermalakeError


def command(
    host: Annotated[str | None, typer.Option(metavar="H", help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(metavar="P", min=1, max=65535, help="Port.")] = None,
    config: Annotated[str | None, typer.Option(metavar="FILE", help="Configuration file.")] = None,
) -> None:
    """Serve the published lake: the API of IOTA nodes and of Wormhole explorers, docs at /docs.

    Without configuration it answers from the lake that is there. Every answer is of one published state; a
    new publication is served within seconds.

    Examples:
      permalake serve

      permalake serve --host 0.0.0.0 --port 8080

      curl http://127.0.0.1:8042/shimmer/api/core/v2/info
    """
    settings = load_settings(config)

    import uvicorn

    from permalake.api.app import create_app
    from permalake.lake.serving import has_lake

    if not has_lake(settings):
        raise PermalakeError(
            f"no lake at {settings.lake.warehouse}; build one first (make demo or permalake run)"
        )
    app = create_app(settings)
    # What is loaded by now stays for good; the garbage collector need not look through it again.
    gc.collect()
    gc.freeze()
    address = host or settings.serve.host
    number = settings.serve.port if port is None else port
    sys.stderr.write(f"serving {settings.lake.warehouse} at http://{address}:{number}, docs at /docs\n")
    uvicorn.run(app, host=address, port=number, log_level="warning", access_log=False, server_header=False)
