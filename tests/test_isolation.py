"""The suite works on lakes of its own, whatever the shell that starts it has exported."""

from __future__ import annotations

import os
import subprocess
import sys

from permalake.paths import ROOT

PROBE = """
from permalake.config import Settings
def test_probe(tmp_path):
    assert Settings(lake={"warehouse": str(tmp_path)}).lake.warehouse == str(tmp_path)
"""


def test_an_exported_warehouse_does_not_reach_the_tests(tmp_path) -> None:
    probe = ROOT / "tests" / f"test_probe_{os.getpid()}.py"
    probe.write_text(PROBE)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(probe)],
            cwd=ROOT,
            env={**os.environ, "PERMALAKE_LAKE__WAREHOUSE": str(tmp_path / "precious")},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    finally:
        probe.unlink()
    assert done.returncode == 0, done.stdout


def test_a_domains_declaration_loads_no_router() -> None:
    """What Airflow parses every few seconds must not load the API."""
    code = (
        "import sys, permalake.domains;"
        "print([name for name in sys.modules if name.startswith(('fastapi', 'duckdb'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "[]\n"
