"""A DuckDB with the extensions httpfs and iceberg, in an environment of its own.

The DuckDB of this repository is newer than the newest packages of extensions.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from permalake.paths import ROOT

_FILES = ROOT / "tests" / "support" / "duckdb_extensions"
_UV = Path(sys.executable).with_name("uv")
_LOADED = ("avro", "httpfs", "iceberg")


class ExtendedDuckDB:
    """The environment in a folder, which is made if it is not there."""

    def __init__(self, folder: Path) -> None:
        self._python = folder / "bin" / "python"
        if (folder / "installed").exists():
            return
        subprocess.run([_UV, "venv", "-q", "--python", sys.executable, folder], check=True, timeout=60)
        locked = ["--require-hashes", "--python", self._python, _FILES / "requirements.txt"]
        subprocess.run([_UV, "pip", "sync", "-q", *locked], check=True, timeout=300)
        (folder / "installed").touch()

    def answer(self, statements: str | Sequence[str]) -> dict[str, Any]:
        """Run statements in a new process; return ``columns`` and ``rows`` of the last one, or ``error``.

        Those that load extensions are left out: the environment has them.
        """
        listed = statements.split(";\n") if isinstance(statements, str) else statements
        needed = [one for one in listed if one.strip() and not one.lstrip().startswith("INSTALL ")]
        asked = json.dumps({"extensions": _LOADED, "statements": needed})
        command = [self._python, _FILES / "ask.py"]
        done = subprocess.run(command, input=asked, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr[-2000:]
        found: dict[str, Any] = json.loads(done.stdout)
        return found
