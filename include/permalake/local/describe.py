"""The Markdown page of all DAGs, from the documentation that they carry themselves."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from pathlib import Path
from typing import Any

from permalake.local.airflow_env import airflow_environment
from permalake.paths import DAGS

_NOTICE = "<!-- Generated from the DAGs by `make docs`; changes belong there. -->"


def load_dags() -> list[Any]:
    """Every DAG object of the ``dags`` folder, by file name. An error in a file is raised."""
    dags = []
    for file in sorted(DAGS.glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"permalake_dags_{file.stem}", file)
        if spec is None or spec.loader is None:
            raise ImportError(f"{file} cannot be loaded")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        dags.append(module.dag)
    return dags


def describe_dags() -> str:
    """Return the page: per DAG its documentation, its parameters and its tasks."""
    with tempfile.TemporaryDirectory() as scratch:
        os.environ.update(airflow_environment(database=Path(scratch) / "none.db"))
        dags = load_dags()
    return "\n".join([_NOTICE, "# The DAGs", "", *(line for dag in dags for line in _section(dag))])


def _section(dag: Any) -> list[str]:
    lines = [
        f"## {dag.dag_id}",
        "",
        dag.doc_md.strip(),
        "",
        "| parameter | default | meaning |",
        "| --- | --- | --- |",
    ]
    for name in dag.params:
        param = dag.params.get_param(name)
        lines.append(f"| {name} | {param.value if param.value is not None else ''} | {param.description} |")
    lines += ["", "| task | what it does |", "| --- | --- |"]
    lines += [f"| {task.task_id} | {' '.join(task.doc_md.split())} |" for task in dag.topological_sort()]
    return [*lines, ""]
