"""Suites of the tables of the namespace ``wormhole``."""
