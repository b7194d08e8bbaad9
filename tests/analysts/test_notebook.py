"""The analysts' notebook runs on another lake, and every question has a chart."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from itertools import pairwise

import pytest

from permalake.paths import ROOT

NOTEBOOK = ROOT / "docs" / "notebooks" / "analysts.ipynb"
PNG = b"\x89PNG"


def shown(file):
    """What the code below each heading shows, by heading."""
    cells = json.loads(file.read_text())["cells"]
    return {
        "".join(text["source"]).rpartition("### ")[2].splitlines()[0]: code["outputs"]
        for text, code in pairwise(cells)
        if (text["cell_type"], code["cell_type"]) == ("markdown", "code")
    }


@pytest.fixture(scope="module")
def ran(both_settings, tmp_path_factory):
    """A copy of the notebook after it ran in a process of its own."""
    folder = tmp_path_factory.mktemp("notebook")
    (folder / "permalake.toml").write_text(f'[lake]\nwarehouse = "{both_settings.lake.warehouse}"\n')
    file = shutil.copy(NOTEBOOK, folder)
    environment = {**os.environ, "PERMALAKE_CONFIG": str(folder / "permalake.toml")}
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "notebook.py", file],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return shown(folder / NOTEBOOK.name)


@pytest.mark.parametrize("state", ["as it is kept", "on another lake"])
def test_every_question_has_a_chart(ran, state):
    outputs = ran if state == "on another lake" else shown(NOTEBOOK)
    questions = {title: found for title, found in outputs.items() if title.split(".")[0].isdigit()}
    assert [int(title.split(".")[0]) for title in questions] == list(range(1, 11))
    for title, [output] in questions.items():
        assert base64.b64decode(output["data"]["image/png"]).startswith(PNG), title


def test_every_engine_reads_the_same(ran, both):
    [row] = both.query("SELECT sum(message_count) AS n FROM shimmer.ms_analytics").arrow().to_pylist()
    for engine in ("PyIceberg and DuckDB", "Polars", "Spark"):
        [output] = ran[engine]
        assert str(int(row["n"])) in "".join(output["data"]["text/plain"]), engine
