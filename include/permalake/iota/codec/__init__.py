"""Codec of IOTA objects for both protocols: bytes, columns, records and node JSON."""
