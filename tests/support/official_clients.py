"""Access to the official IOTA client libraries, for tests that compare with them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import iota_sdk

from support import npm
from support.npm import BIN

HERE = Path(__file__).parent / "clients"


def install() -> None:
    """Install the npm packages of the lock if they are absent or older than the lock."""
    npm.install(HERE)


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
