"""Access to the official IOTA client libraries, for tests that compare with them."""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
from pathlib import Path

import iota_sdk

HERE = Path(__file__).parent / "clients"
BIN = Path(sys.executable).parent
INSTALLED = HERE / "node_modules" / ".package-lock.json"


def install():
    """Install the npm packages of the lock if they are absent or older than the lock."""
    lock = HERE / "package-lock.json"
    with (HERE / ".install.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not INSTALLED.exists() or INSTALLED.stat().st_mtime < lock.stat().st_mtime:
            arguments = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
            subprocess.run([BIN / "npm", *arguments], cwd=HERE, check=True, timeout=300)
            INSTALLED.touch()


def iota_js(objects):
    """Return the ``{"body", "raw"}`` or ``{"error"}`` of each ``{"protocol", "kind", "raw", "body"}``."""
    install()
    lines = "".join(f"{json.dumps(one)}\n" for one in objects)
    done = subprocess.run(
        [BIN / "node", HERE / "iota_codec.js"],
        input=lines,
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def sdk(method, **data):
    """Return the answer of a utility of iota-sdk, which is Rust behind JSON."""
    answer = json.loads(iota_sdk.call_utils_method(json.dumps({"name": method, "data": data})))
    assert answer["type"] not in {"error", "panic"}, answer
    return answer["payload"]


if __name__ == "__main__":
    install()
