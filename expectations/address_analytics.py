"""Expectations of ``address_analytics``: those of its contract, and laws."""

from permalake.audit.suite import suite

SUITE = suite("address_analytics")
