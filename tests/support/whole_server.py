"""``permalake serve`` in a process of its own, over both synthetic tangles and the Wormhole world."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from permalake.config import Settings
from permalake.local.services.daemon import free_port
from support import synthetic_lake
from support.length import LONG
from support.served_wormhole import publish_world, wormhole_settings

PERMALAKE = Path(sys.executable).with_name("permalake")


@dataclass(frozen=True)
class WholeServer:
    """A server's address and process id, the rows of Wormhole's tables, and the file of its log."""

    address: str
    pid: int
    wormhole_rows: dict[str, list[dict]]
    log: Path


@dataclass(frozen=True)
class WholeLake:
    """The settings of a lake with everything that is synthetic, and the rows of Wormhole's tables."""

    settings: Settings
    wormhole_rows: dict[str, list[dict]]


def whole_lake(folder: Path) -> WholeLake:
    """The lake in ``folder``, which is published there the first time.

    Test processes share it: nobody may write into it.
    """
    settings = synthetic_lake.settings_of(folder / "lake")
    settings = settings.model_copy(update={"wormhole": wormhole_settings(folder).wormhole})
    kept = folder / "rows.pickle"
    if not kept.exists():
        synthetic_lake.build(settings)
        folder.mkdir(exist_ok=True)
        kept.write_bytes(pickle.dumps(publish_world(settings)))
    return WholeLake(settings, pickle.loads(kept.read_bytes()))


@contextmanager
def whole_server(lake: WholeLake, folder: Path):
    """Serve the lake but for network ``cut``; ``folder`` is for what the server writes."""
    told = lake.settings.model_dump(mode="json", exclude_none=True, include={"lake", "networks", "wormhole"})
    told["networks"].pop("cut")
    config = folder / "permalake.toml"
    config.write_text("".join(f"[{name}]\n{_lines(body)}" for name, body in told.items()))
    port = free_port()
    command = serve_command(port, config)
    log = folder / "serve.log"
    with log.open("w") as written:
        environment = {**os.environ, "PERMALAKE_HOME": str(folder / "home")}
        process = subprocess.Popen(command, env=environment, stderr=written, stdout=written)
    address = f"http://127.0.0.1:{port}"
    try:
        _wait(address, process, log)
        yield WholeServer(address, process.pid, lake.wormhole_rows, log)
    finally:
        process.terminate()
        process.wait(30)


def serve_command(port: int, config: Path) -> list[str]:
    """Return the command of a server; four workers in ``make long``, else one per core."""
    more = ["--workers", "4"] if LONG else []
    return [str(PERMALAKE), "serve", "--port", str(port), "--config", str(config), *more]


def _wait(address, process, log):
    until = time.monotonic() + 180
    while True:
        try:
            if httpx.get(f"{address}/health", timeout=30).status_code == 200:
                return
        except httpx.TransportError:
            assert process.poll() is None, log.read_text()
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.1)


def _lines(body):
    return "".join(f"{name} = {_toml(value)}\n" for name, value in body.items())


def _toml(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{name}" = {_toml(one)}' for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else repr(value)
