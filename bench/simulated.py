"""Simulated input of the benchmarks, made once and kept in ``bench/.data`` for the next time."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

DATA = Path(__file__).parent / ".data"
COMMAND = str(Path(sys.executable).with_name("permalake"))


def simulated(name: str, *arguments: str) -> Path:
    """Return the folder ``name`` with what ``permalake simulate ARGUMENTS`` writes."""
    folder = DATA / name
    if not folder.exists():
        part = folder.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        subprocess.run([COMMAND, "simulate", *arguments, "--out", str(part)], stdout=2, check=True)
        part.rename(folder)
    return folder
