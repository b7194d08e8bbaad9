"""Spark job of the step analytics of an IOTA network."""

from __future__ import annotations

from permalake.domains import domain_of
from permalake.pipeline.jobs import Job

main = Job("iota_analytics", domain_of)

if __name__ == "__main__":
    main.process()
