"""Programs on this machine: Airflow, the demo, the stores' servers."""

from __future__ import annotations

import os
from pathlib import Path

from permalake.config import CONFIG_VARIABLE
from permalake.paths import ROOT


def config_of_make() -> Path:
    """Return the file of settings that make's commands use: ``PERMALAKE_CONFIG``, else the repository's."""
    return Path(os.environ.get(CONFIG_VARIABLE) or ROOT / "permalake.toml")
