"""``permalake services``: both servers at once. Each verb may be repeated at any time."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from permalake.local.services import bigtable, cassandra
from permalake.local.services.bigtable import BigtableEmulator
from permalake.local.services.cassandra import Cassandra
from permalake.local.services.daemon import LOOPBACK, alone
from permalake.paths import HOME
from permalake.spark import jars

FOLDER = HOME / "services"
LIBRARY = FOLDER / "lib"
EMULATOR_VARIABLE = "BIGTABLE_EMULATOR_HOST"

Server = Cassandra | BigtableEmulator
Say = Callable[[str], None]


@dataclass(frozen=True)
class ServiceStatus:
    """One server: ``state`` is ``up``, ``down``, or ``sick`` when the process lives and does not answer."""

    name: str
    state: str
    address: str
    pid: int | None
    log: str


def servers(
    cassandra_port: int | None = None,
    bigtable_port: int | None = None,
    folder: Path = FOLDER,
    library: Path = LIBRARY,
) -> dict[str, Server]:
    """Return the servers by name; a port that is not given is the one in use, else the usual one."""
    return {
        "cassandra": Cassandra(
            folder / "cassandra",
            library,
            cassandra_port or _port(Cassandra(folder / "cassandra", library), cassandra.PORT),
        ),
        "bigtable": BigtableEmulator(
            folder / "bigtable",
            library,
            bigtable_port or _port(BigtableEmulator(folder / "bigtable", library), _emulator_port()),
        ),
    }


def _port(server: Server, usual: int) -> int:
    record = server.daemon.record()
    return record["port"] if record else usual


def _emulator_port() -> int:
    host, _, port = os.environ.get(EMULATOR_VARIABLE, "").rpartition(":")
    return int(port) if host in {LOOPBACK, "localhost"} and port.isdigit() else bigtable.PORT


def fetch(chosen: dict[str, Server], say: Say) -> None:
    """Bring what is missing: the servers, and the jars with which Spark writes into them."""
    for name, server in chosen.items():
        if not server.fetched():
            say(f"{name}: fetching (once; a minute or two)")
            server.fetch()
    if jars.missing(jars.STORE_COORDINATES):
        say("connectors for Spark: fetching (once)")
        jars.resolve(jars.STORE_COORDINATES)


def up(chosen: dict[str, Server], say: Say, folder: Path = FOLDER) -> None:
    """Fetch what is missing and start what is down; a server that answers is left alone."""
    with alone(folder):
        fetch(chosen, say)
        for name, server in chosen.items():
            record = server.daemon.record()
            if record and server.healthy():
                say(f"{name}: up at {LOOPBACK}:{record['port']} already")
                continue
            if record:
                say(f"{name}: does not answer; starting again")
                server.daemon.stop()
            say(f"{name}: starting")
            server.up()
            say(f"{name}: up at {LOOPBACK}:{server.port}")


def down(chosen: dict[str, Server], say: Say, folder: Path = FOLDER) -> None:
    """Stop the process groups that ``up`` started, and nothing else."""
    with alone(folder):
        for name, server in chosen.items():
            say(f"{name}: stopped" if server.daemon.stop() else f"{name}: was not up")


def status(chosen: dict[str, Server]) -> list[ServiceStatus]:
    """Return what every server is doing."""
    states = []
    for name, server in chosen.items():
        record = server.daemon.record()
        state = ("up" if server.healthy() else "sick") if record else "down"
        address = f"{LOOPBACK}:{server.port}"
        states.append(
            ServiceStatus(name, state, address, record["pid"] if record else None, str(server.daemon.log))
        )
    return states
