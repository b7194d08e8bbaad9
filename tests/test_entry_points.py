"""What the files outside the package may import: they declare and hand over, the work lies in the package."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from permalake import paths

ALLOWED = {
    paths.DAGS: r"airflow\.sdk|permalake\.orchestrate(\..+)?|permalake\.(iota|wormhole)\.day",
    paths.PLUGINS: r"airflow(\..+)?|permalake\.orchestrate(\..+)?",
    paths.SPARK_JOBS: r"permalake\.(domains|pipeline\..+)",
    paths.EXPECTATIONS: r"expectations\.common|permalake\.(contracts|audit|(iota|wormhole)\.laws)(\..+)?",
}
STANDARD = r"__future__|collections\.abc|typing"


def imported(file: Path) -> set[str]:
    """The modules that a file imports, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module)
    return found


@pytest.mark.parametrize("folder", ALLOWED, ids=lambda folder: folder.name)
def test_an_entry_point_imports_its_layer_only(folder) -> None:
    files = sorted(folder.rglob("*.py"))
    assert files
    allowed = re.compile(f"{ALLOWED[folder]}|{STANDARD}")
    others = {file.name: {name for name in imported(file) if not allowed.fullmatch(name)} for file in files}
    assert {name: found for name, found in others.items() if found} == {}


PARSED = """
import json, runpy, sys
heavy = ("pyspark", "duckdb", "pyiceberg", "great_expectations", "cassandra")
is_heavy = lambda name: name in heavy or "simulate" in name and "permalake" in name
loaded = {}
for file in sys.argv[1:]:
    runpy.run_path(file)
    loaded[file] = [*filter(is_heavy, sys.modules)]
print(json.dumps(loaded))
"""


def test_parsing_a_dag_file_loads_nothing_heavy(tmp_path) -> None:
    """All files in one process: each import of Airflow takes seconds."""
    files = [str(file) for file in sorted(paths.DAGS.glob("*.py"))]
    assert files
    environment = {**os.environ, "AIRFLOW_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", PARSED, *files], env=environment, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout.splitlines()[-1]) == {file: [] for file in files}
