"""Spark job of the DAG ``lake_maintenance``: days in many small files → the same rows in few full ones."""

from __future__ import annotations

from permalake.domains import domain_of
from permalake.pipeline.compaction import CompactionJob

main = CompactionJob(domain_of)

if __name__ == "__main__":
    main.process()
