"""The analysts' notebooks run on another lake, and every question and measurement has an answer."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from itertools import takewhile

import pytest

from permalake.paths import ROOT

NOTEBOOKS = ROOT / "docs" / "notebooks"
PNG = b"\x89PNG"
MEASUREMENTS = (
    *("Native tokens", "Conditions and states", "Account statement and balance at a milestone"),
    *("Receipts and protocol parameters", "Activity over time", "Transfers beyond the token bridge"),
    *("Redemptions and time to redemption", "Scorecards and governor"),
    *("Prices: distance, cross-check and stand-ins", "Hourly flows, and a calendar for both products"),
)


def shown(file):
    """What the code below each heading shows, by heading: the outputs of each cell."""
    cells = json.loads(file.read_text())["cells"]
    sources = ["".join(cell["source"]) for cell in cells]
    headings = [at for at, source in enumerate(sources) if "### " in source]
    return {
        sources[at].rpartition("### ")[2].splitlines()[0]: [
            cell["outputs"]
            for cell in takewhile(lambda cell: not _is_heading(cell), cells[at + 1 :])
            if cell["cell_type"] == "code"
        ]
        for at in headings
    }


def _is_heading(cell):
    return cell["cell_type"] == "markdown" and "".join(cell["source"]).startswith("#")


def numbered(outputs):
    """The answers by heading, which count from 1."""
    found = {title: cells for title, cells in outputs.items() if title.split(".")[0].isdigit()}
    assert [int(title.split(".")[0]) for title in found] == list(range(1, 11))
    return found


@pytest.fixture(scope="module")
def run(both_settings, tmp_path_factory):
    """A function that runs a copy of a notebook in a process of its own, and returns what it shows."""

    def runs(name):
        folder = tmp_path_factory.mktemp("notebook")
        (folder / "permalake.toml").write_text(f'[lake]\nwarehouse = "{both_settings.lake.warehouse}"\n')
        file = shutil.copy(NOTEBOOKS / name, folder)
        done = subprocess.run(
            [sys.executable, ROOT / "tools" / "notebook.py", file],
            cwd=folder,
            env={**os.environ, "PERMALAKE_CONFIG": str(folder / "permalake.toml")},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return shown(folder / name)

    return runs


@pytest.fixture(scope="module")
def questions(run):
    return run("analysts.ipynb")


@pytest.mark.parametrize("state", ["as it is kept", "on another lake"])
def test_every_question_has_a_chart(questions, state) -> None:
    outputs = questions if state == "on another lake" else shown(NOTEBOOKS / "analysts.ipynb")
    for title, [[output]] in numbered(outputs).items():
        assert base64.b64decode(output["data"]["image/png"]).startswith(PNG), title


def test_every_engine_reads_the_same(questions, both) -> None:
    [row] = both.query("SELECT sum(message_count) AS n FROM shimmer.ms_analytics").arrow().to_pylist()
    for engine in ("PyIceberg and DuckDB", "Polars", "Spark"):
        [[output]] = questions[engine]
        assert str(int(row["n"])) in "".join(output["data"]["text/plain"]), engine


def test_every_measurement_has_an_example_with_rows() -> None:
    kept = numbered(shown(NOTEBOOKS / "measurements.ipynb"))
    assert [title.partition(". ")[2].removesuffix(" (synthetic)") for title in kept] == list(MEASUREMENTS)
    for title, cells in kept.items():
        for [output] in cells:
            table = "".join(output["data"]["text/plain"])
            assert table.startswith("shape: ("), title
            assert not table.startswith("shape: (0,"), title


def test_every_example_runs_on_another_lake(run) -> None:
    found, kept = run("measurements.ipynb"), shown(NOTEBOOKS / "measurements.ipynb")
    columns = {title: [_columns(output) for [output] in cells] for title, cells in found.items()}
    assert columns == {title: [_columns(output) for [output] in cells] for title, cells in kept.items()}


def _columns(output):
    """The names of a table's columns: those that Polars shows however wide it is."""
    html = "".join(output["data"]["text/html"])
    return html.partition("<thead>")[2].partition("</tr>")[0]
