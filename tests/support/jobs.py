"""The Spark jobs, run inside the test's own process."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

from permalake.paths import SPARK_JOBS


def job(name: str) -> Callable[..., None]:
    """Return ``main`` of ``spark/{name}.py``."""
    spec = importlib.util.spec_from_file_location(name, SPARK_JOBS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main
