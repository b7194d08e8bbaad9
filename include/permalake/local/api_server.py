"""``make up`` and ``make down``: the REST API on this machine, in the background."""

from __future__ import annotations

import sys
from pathlib import Path

import httpx

from permalake.config import load_settings
from permalake.errors import PermalakeError
from permalake.local import config_of_make
from permalake.local.services.daemon import Daemon, alone
from permalake.paths import HOME
from permalake.spark.submit import bin_folder

_READY_SECONDS = 120
_THIS_MACHINE = ("127.0.0.1", "0.0.0.0", "::", "::1", "localhost")  # noqa: S104 - compared alone


def up(folder: Path = HOME / "serve") -> str:
    """Start the API over the configured lake if it is not running; return its address.

    Raises:
        PermalakeError: if it does not answer in time; the message names its log.
    """
    with alone(folder):
        config = config_of_make()
        settings = load_settings(config).serve
        server = Daemon("serve", folder, "PERMALAKE_SERVE__PORT", place=Path.cwd())
        host = "localhost" if settings.host in _THIS_MACHINE else settings.host
        running = server.record()
        address = f"http://{host}:{running['port'] if running else settings.port}"
        if running is None:
            command = [str(bin_folder() / "permalake"), "serve", "--config", str(config)]
            server.start(command, settings.port, lambda: _answers(address), _READY_SECONDS)
        return address


def down(folder: Path = HOME / "serve") -> bool:
    """Stop what :func:`up` started; return whether it was running."""
    return Daemon("serve", folder).stop()


def _answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}/health", timeout=5).is_success
    except httpx.HTTPError:
        return False


if __name__ == "__main__":
    try:
        if sys.argv[1] == "up":
            sys.stdout.write(f"API       {up()}, its routes at /docs\n")
        else:
            down()
    except PermalakeError as error:
        sys.exit(f"permalake: {error}")
