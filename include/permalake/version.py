"""The version of Permalake."""

VERSION = "0.1.0"
