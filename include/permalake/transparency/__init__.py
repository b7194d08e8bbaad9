"""Digests of days, signed manifests, and the append-only log that lets anybody check a copy of the lake."""
