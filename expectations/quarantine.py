"""Expectations of ``quarantine``: those of its contract, and laws."""

from permalake.audit.suite import suite

SUITE = suite("quarantine")
