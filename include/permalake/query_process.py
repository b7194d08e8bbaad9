"""Queries in a process of their own, which holds its limits whatever the query does.

DuckDB counts neither the text that an expression makes nor what becomes of a result, and looks at its clock
only between pieces of work. The process may have no more memory than its limit, and is killed some time after
its time is up.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from multiprocessing.forkserver import ensure_running
from pathlib import Path
from typing import Any

from permalake.errors import ConfigError, PermalakeError, error_of, line_of

Send = Callable[[Any], None]
Work = Callable[..., None]

_GRACE = 3.0
# Beside the query's memory: what its result is turned into, and of each thread its stack.
_RESULT, _THREAD = 256 << 20, 24 << 20
# What a query loads, and the process at the side of a server has loaded before.
_LOADED = [
    # What the main module of a server loads: multiprocessing runs it again in each process. Were the module
    # itself loaded before, Python would warn of it in the middle of a user's line.
    "typer",
    "sqlalchemy.dialects.sqlite",
    "permalake.lake.query",
    "permalake.lake.counts",
    "permalake.lake.json_rows",
    "permalake.iota.contracts",
    "permalake.wormhole.contracts",
    "permalake.cli.render",
    "permalake.api.sql_process",
]
_DATA = re.compile(r"^VmData:\s+(\d+) kB$", re.MULTILINE)
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT])(i?)B", re.IGNORECASE)
_POWERS = {"K": 1, "M": 2, "G": 3, "T": 4}


@dataclass(frozen=True)
class QueryLimits:
    """Limits of one query.

    ``timeout`` is in seconds (None: no limit); ``memory`` and ``spill`` (space for temporary files) are sizes
    as DuckDB writes them, such as ``2GiB``. ``names`` are what errors call the first two.
    """

    timeout: float | None = 300.0
    memory: str = "2GiB"
    spill: str = "20GiB"
    names: tuple[str, str] = ("--timeout", "--memory")

    def __post_init__(self) -> None:
        for size in (self.memory, self.spill):
            if not _SIZE.fullmatch(size.strip()):
                raise ConfigError(f"{size}: not a size; write it as 500MiB or 2GiB")
        if self.timeout is not None and not 0 < self.timeout <= threading.TIMEOUT_MAX:
            raise ConfigError(f"{self.timeout:g}: not a timeout; give seconds above 0")

    @property
    def memory_bytes(self) -> int:
        """``memory`` in bytes."""
        parts = _SIZE.fullmatch(self.memory.strip())
        if parts is None:
            raise ConfigError(f"{self.memory}: not a size; write it as 500MiB or 2GiB")
        number, unit, binary = parts.groups()
        return int(float(number) * (1024 if binary else 1000) ** _POWERS[unit.upper()])

    def too_slow(self) -> PermalakeError:
        """Return the error of a query whose time is up."""
        return PermalakeError(
            f"the query took longer than {self.timeout:g} s; narrow it, or raise {self.names[0]}"
        )

    def too_large(self) -> PermalakeError:
        """Return the error of a query that needs more memory."""
        return PermalakeError(
            f"the query needs more than {self.memory} of memory; narrow it, or raise {self.names[1]}"
        )


DEFAULT_LIMITS = QueryLimits()


def in_own_process(work: Work, arguments: tuple[Any, ...], limits: QueryLimits) -> Iterator[Any]:
    """Yield what ``work(send, *arguments)`` sends from a process of its own.

    ``work`` calls :func:`limit_memory` when it has loaded what it needs. A process without threads is forked,
    which costs next to nothing; another (a server, a notebook) has a process without threads at its side that
    is forked instead, so that ``work`` and its arguments are pickled.

    Raises:
        PermalakeError: What ``work`` raised, or that it needed more time or memory than its limits.
    """
    context = multiprocessing.get_context("fork") if _is_single() else _server()
    receiver, sender = context.Pipe(duplex=False)
    with tempfile.TemporaryDirectory(prefix="permalake-query-", ignore_cleanup_errors=True) as scratch:
        process = context.Process(target=_run, args=(sender, scratch, work, arguments), daemon=True)
        process.start()
        # From here on: the process at the side of a server may have to load what it forks with.
        deadline = None if limits.timeout is None else time.monotonic() + limits.timeout + _GRACE
        sender.close()
        try:
            yield from _received(receiver, deadline, limits)
        finally:
            process.kill()
            process.join()
            receiver.close()


def prepare() -> None:
    """Start the process at the side of a server, so that its first query need not wait for it."""
    _server()
    ensure_running()


def limit_memory(limits: QueryLimits) -> None:
    """Let this process have no more memory beyond what it has than a query of these limits may take."""
    if not (status := Path("/proc/self/status")).exists():
        return  # what the kernel does not count it cannot limit
    import resource

    taken = int(_DATA.findall(status.read_text("ascii"))[0]) << 10
    most = taken + limits.memory_bytes + _RESULT + _THREAD * (os.cpu_count() or 1)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _is_single() -> bool:
    """Return whether this process has one thread, so that a fork of it is whole."""
    tasks = Path("/proc/self/task")
    return sys.platform == "linux" and len(list(tasks.iterdir())) == 1 == threading.active_count()


def _server() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_LOADED)
    return context


def _received(receiver: Connection, deadline: float | None, limits: QueryLimits) -> Iterator[Any]:
    while True:
        left = None if deadline is None else max(deadline - time.monotonic(), 0)
        if not receiver.poll(left):
            raise limits.too_slow()
        try:
            kind, value = receiver.recv()
        except (EOFError, OSError):  # killed, within a row too, or aborted when it got no more memory
            raise limits.too_large() from None
        if kind == "end":
            return
        if kind == "error":
            raise error_of(*value)
        yield value


def _run(sender: Connection, scratch: str, work: Work, arguments: tuple[Any, ...]) -> None:
    # Whoever interrupts the command ends this process too.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tempfile.tempdir = scratch
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        work(lambda value: sender.send(("value", value)), *arguments)
        last: tuple[str, Any] = ("end", None)
    except PermalakeError as error:
        last = ("error", (error.exit_code, str(error)))
    except BrokenPipeError:
        return
    except MemoryError:
        return  # its end says so
    except Exception as error:  # noqa: BLE001
        last = ("error", (PermalakeError.exit_code, line_of(error)))
    sender.send(last)


def _end_with_parent() -> None:
    """End this process once the one that waits for it was killed: nobody else would end the query."""
    if parent := multiprocessing.parent_process():
        parent.join()
        os.kill(os.getpid(), signal.SIGKILL)
