"""The daemon of Spark's Python workers on this machine: PySpark's own, read from the environment.

Spark starts it by ``spark.python.daemon.module``; what it forks has imported PySpark already.
"""

from __future__ import annotations

import runpy

from permalake.spark.installed_pyspark import prefer_installed

if __name__ == "__main__":
    prefer_installed()
    runpy.run_module("pyspark.daemon", run_name="__main__", alter_sys=True)
