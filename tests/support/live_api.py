"""The REST API on a socket of its own, in a thread of the tests."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from permalake.api.bounded_http import bounded_config


@contextmanager
def live_api(app: FastAPI) -> Iterator[str]:
    """Serve an application on a free port of the loopback; yield its address."""
    server = uvicorn.Server(bounded_config(app, app.state.settings.serve, "127.0.0.1", 0))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        time.sleep(0.01)
    try:
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(10)
