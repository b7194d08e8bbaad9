"""Packages of Node.js for tests, from a lock file."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

BIN = Path(sys.executable).parent


def install(folder: Path) -> Path:
    """Install the packages of a folder's lock if they are absent or older; return where they are."""
    modules = folder / "node_modules"
    installed, lock = modules / ".package-lock.json", folder / "package-lock.json"
    with (folder / ".install.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
            arguments = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
            subprocess.run([BIN / "npm", *arguments], cwd=folder, check=True, timeout=300)
            installed.touch()
    return modules


if __name__ == "__main__":
    for name in sys.argv[1:]:
        install(Path(name))
