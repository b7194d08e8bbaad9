"""A server process of ours: started in a session of its own, known by a pid file, stopped as a group."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from permalake.errors import PermalakeError
from permalake.process_start import start_of

LOOPBACK = "127.0.0.1"
_GRACE = 30.0


@dataclass(frozen=True)
class Daemon:
    """A named server whose pid file and log lie in ``folder``.

    The pid file holds the process's start time too, so that a number that the system has given to another
    process since is never taken for ours. ``port_from`` names what chooses the port; by default an option.
    ``place``: where the server works, which relative paths in its settings start at; by default ``folder``.
    """

    name: str
    folder: Path
    port_from: str = ""
    place: Path | None = None

    @property
    def log(self) -> Path:
        """The server's output."""
        return self.folder / f"{self.name}.log"

    @property
    def _file(self) -> Path:
        return self.folder / f"{self.name}.pid"

    def record(self) -> dict[str, int] | None:
        """``pid`` and ``port`` of the running server; None when it is not running, whatever the file says."""
        try:
            recorded = json.loads(self._file.read_text("utf-8"))
            process = psutil.Process(recorded["pid"])
            alive = process.status() != psutil.STATUS_ZOMBIE
            same = start_of(process) == recorded["start"]
        except (OSError, ValueError, KeyError, psutil.Error):
            return None
        return {"pid": recorded["pid"], "port": recorded["port"]} if alive and same else None

    def start(
        self,
        command: Sequence[str],
        port: int,
        ready: Callable[[], bool],
        seconds: float,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start the server and wait until ``ready``.

        Raises:
            PermalakeError: if it is not ready in time; what was started is stopped again, and the error
                names the log.
        """
        if not free(port):
            option = self.port_from or f"--{self.name}-port"
            raise PermalakeError(f"port {port} is in use; give {self.name} another ({option})")
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                list(command),
                cwd=self.place or self.folder,
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        start = start_of(psutil.Process(process.pid))
        self._file.write_text(json.dumps({"pid": process.pid, "port": port, "start": start}), "utf-8")
        deadline = time.monotonic() + seconds
        while not ready():
            if process.poll() is not None or time.monotonic() > deadline:
                fate = "ended at once" if process.poll() is not None else f"is not up after {seconds:.0f} s"
                self.stop()
                raise PermalakeError(f"{self.name} {fate}; see {self.log}")
            time.sleep(0.2)

    def stop(self) -> bool:
        """Stop the server with all it has started; whether there was one. Its pid file goes either way."""
        recorded = self.record()
        if recorded:
            _end_group(recorded["pid"])
        self._file.unlink(missing_ok=True)
        return recorded is not None


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold others off that start servers whose files lie in `folder`: two at once must not start two."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _end_group(group: int) -> None:
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(group, sign)
        except ProcessLookupError:
            return
        deadline = time.monotonic() + _GRACE
        while time.monotonic() < deadline:
            if not _group_lives(group):
                return
            time.sleep(0.1)


def _group_lives(group: int) -> bool:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(group, os.WNOHANG)  # a child of ours would stay as a zombie
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def free(port: int) -> bool:
    """Whether nobody listens on this loopback port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """Return a loopback port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
    return port
