"""Workers: several processes that answer on one port, below a supervisor that replaces those that die.

The supervisor holds the listening socket, so that a connection which a dead worker had not accepted yet goes
to another one. Each worker follows publications by itself; who is first builds the index of ids under a lock,
the others map it.
"""

from __future__ import annotations

import gc
import logging
import math
import os
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from starlette.types import ASGIApp
from uvicorn import Config
from uvicorn.supervisors import Multiprocess

from permalake.api.bounded_http import bounded_config
from permalake.api.shared_counts import METRICS_FOLDER, RATES_FILE, forget_worker
from permalake.config import Settings
from permalake.errors import PermalakeError

_PARENT_SECONDS = 0.5
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_RETRY_SECONDS = 5
_LOG = logging.getLogger(__name__)


class WorkersFailedError(Exception):
    """Raised if a worker cannot start, or the address is taken; uvicorn has logged why."""


def serve_by_workers(
    settings: Settings, host: str, port: int, workers: int, listens: Callable[[], object]
) -> None:
    """Answer requests by so many processes, until SIGTERM or SIGINT; requests under way are finished.

    ``listens`` is called once, when the first worker accepts connections.
    """
    folder = Path(tempfile.mkdtemp(prefix="permalake-workers-"))
    os.environ[METRICS_FOLDER], os.environ[RATES_FILE] = str(folder), str(folder / "rates")
    app = partial(_application, shared(settings, workers), workers, os.getpid())
    config = bounded_config(app, shared(settings, workers).serve, host, port, workers)
    try:
        supervisor = _Supervisor(config, config.bind_socket(), listens)
        supervisor.run()
    except SystemExit:
        raise WorkersFailedError from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if supervisor.failed:
        raise WorkersFailedError


def usable_cores() -> int:
    """Return how many cores this process may use, by its affinity and by its container's quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = _QUOTA.read_text("ascii").split()
        return max(min(cores, math.ceil(int(quota) / int(period))), 1)
    except (OSError, ValueError):
        # No control group, or "max": no quota.
        return cores


def shared(settings: Settings, workers: int) -> Settings:
    """Return the settings of one worker: its share of what the limits of ``[serve]`` allow together."""
    serve = settings.serve
    share = {
        name: max(math.ceil(getattr(serve, name) / workers), least)
        for name, least in (("concurrency", 1), ("queue", 0), ("connections", 16), ("lake_pool", 2))
    }
    return settings.model_copy(update={"serve": serve.model_copy(update=share)})


class _Supervisor(Multiprocess):
    """uvicorn's supervisor, which also takes a dead worker's gauges out of the metrics."""

    def __init__(self, config: Config, bound: socket.socket, listens: Callable[[], object]) -> None:
        super().__init__(config, [bound])
        self._listens: Callable[[], object] | None = listens

    @property
    def failed(self) -> bool:
        """Whether a worker ended by itself before it served."""
        return any(process.exitcode not in (0, None, -signal.SIGTERM) for process in self.processes)

    def keep_subprocess_alive(self) -> None:
        """Replace workers that have died or hang; log when the first one listens."""
        # The workers share the socket: what one of them makes of it is to be seen here.
        if self._listens and self.sockets[0].getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            self._listens()
            self._listens = None
        before = {process.pid for process in self.processes}
        super().keep_subprocess_alive()
        for pid in before - {process.pid for process in self.processes}:
            forget_worker(pid)


def _application(settings: Settings, workers: int, supervisor: int) -> ASGIApp:
    """Return the application of one of the workers, which ends when its supervisor does."""
    from permalake.api.app import create_app
    from permalake.domains import domain_of
    from permalake.lake.serving import LakeReader

    threading.Thread(target=_end_with, args=(supervisor,), name="supervisor", daemon=True).start()
    while True:
        try:
            # The workers share the cores; a query that looks for one row is cheaper on one thread.
            threads = max(usable_cores() // workers, 1)
            reader = LakeReader(settings, domain_of, settings.serve.lake_pool, threads=threads)
            app = create_app(settings, reader)
            break
        except PermalakeError as error:
            # The supervisor has opened this lake: what is wrong now may pass, as a locked catalog does.
            _LOG.warning("a worker waits: %s", error)
            time.sleep(_RETRY_SECONDS)
    # What is loaded by now stays for good; the garbage collector need not look through it again.
    gc.collect()
    gc.freeze()
    return app


def _end_with(supervisor: int) -> None:
    while os.getppid() == supervisor:
        time.sleep(_PARENT_SECONDS)
    signal.raise_signal(signal.SIGTERM)
