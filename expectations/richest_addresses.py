"""Expectations of ``richest_addresses`` beyond its contract."""

from permalake.audit.suite import suite

SUITE = suite("richest_addresses")
