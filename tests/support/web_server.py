"""``python -m http.server``: what hosts an export and knows nothing of it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_ADDRESS = re.compile(r"\((http://[^/]+)/\)")
_REQUEST = re.compile(r'"GET (\S+) HTTP')


class Asked:
    """The paths that a server was asked for, in order; of those that it logs."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._since = 0

    def __iter__(self) -> Iterator[str]:
        with self._log.open() as lines:
            lines.seek(self._since)
            yield from _REQUEST.findall(lines.read())

    def clear(self) -> None:
        """Forget what was asked for until now."""
        self._since = self._log.stat().st_size


@contextmanager
def web_server(folder: Path) -> Iterator[tuple[str, Asked]]:
    """Serve a folder; give address and the paths that are asked for. The log lies beside the folder."""
    log = folder.with_name(f"{folder.name}.requests")
    log.touch()
    command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", folder]
    with log.open("a") as errors:
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    with server:
        try:
            assert server.stdout is not None
            address = _ADDRESS.search(server.stdout.readline())
            assert address, "the server did not start"
            asked = Asked(log)
            asked.clear()
            yield address[1], asked
        finally:
            server.kill()
