"""Spark job that follows a network between its days."""

from __future__ import annotations

from permalake.domains import domain_of
from permalake.pipeline.live import LiveJob

main = LiveJob(domain_of)

if __name__ == "__main__":
    main.process()
