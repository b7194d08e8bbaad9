"""Spark job of the step ingest_decode of an IOTA network."""

from __future__ import annotations

from permalake.domains import domain_of
from permalake.pipeline.jobs import Job

main = Job("iota_ingest", domain_of)

if __name__ == "__main__":
    main.process()
