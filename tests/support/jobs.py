"""The Spark jobs, run inside the test's own process."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

from pyspark.sql import SparkSession

from permalake.paths import SPARK_JOBS


def job(name: str) -> Callable[..., None]:
    """Return ``main`` of ``spark/{name}.py``; each call has a session of its own, as a submitted job has.

    A session keeps the catalogs that it once opened: with one for all, a job would read another test's lake.
    """
    spec = importlib.util.spec_from_file_location(name, SPARK_JOBS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def run(arguments: list[str], spark: SparkSession | None) -> None:
        module.main(arguments, spark and spark.newSession())

    return run
