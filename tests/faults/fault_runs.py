"""Starts `permalake run` on a lake of its own, over the bundled sample."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import psutil

from permalake.paths import SAMPLE

DAY = "2022-09-28"


def configuration(folder: Path) -> Path:
    """A configuration with a warehouse in ``folder`` and the bundled Shimmer milestones."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "permalake.toml"
    file.write_text(
        '[lake]\nwarehouse = "warehouse"\n\n[networks.shimmer]\nprotocol = "stardust"\nbech32_hrp = "smr"\n'
        f'source = "archive_rest"\npath = "{SAMPLE / "shimmer"}"\n'
    )
    return file


def start(config: Path, *more: str) -> psutil.Popen:
    """``permalake run iota`` for the sample's day, as a process."""
    command = [str(Path(sys.executable).with_name("permalake")), "run", "iota", "--date", DAY, *more]
    log = (config.parent / "run.log").open("ab")
    environment = {**os.environ, "PERMALAKE_CONFIG": str(config)}
    return psutil.Popen(command, env=environment, stdout=log, stderr=log)
