"""Permalake: a permanode for the IOTA Tangle and an event store for Wormhole, as a lakehouse."""

__version__ = "0.1.0"
