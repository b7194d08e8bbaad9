"""Suites of the tables of an IOTA network."""
