"""Spark job of the step enrich_analytics of Wormhole."""

from __future__ import annotations

from permalake.domains import domain_of
from permalake.pipeline.jobs import Job

main = Job("wormhole_enrich", domain_of)

if __name__ == "__main__":
    main.process()
