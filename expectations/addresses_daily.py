"""Expectations of ``addresses_daily``: those of its contract, and laws."""

from permalake.audit.suite import suite

SUITE = suite("addresses_daily")
