"""Spark job of the step carry of either domain."""

from __future__ import annotations

from permalake.domains import domain_of
from permalake.pipeline.jobs import Job

main = Job("carry", domain_of)

if __name__ == "__main__":
    main.process()
