"""The places of the project's own files."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOME = Path(os.environ.get("PERMALAKE_HOME", ROOT / ".permalake")).resolve()
JARS = HOME / "jars"
REFERENCE = ROOT / "include" / "reference"
SAMPLE = ROOT / "include" / "sample"
SPARK_JOBS = ROOT / "spark"
DAGS = ROOT / "dags"
PLUGINS = ROOT / "plugins"
EXPECTATIONS = ROOT / "expectations"
