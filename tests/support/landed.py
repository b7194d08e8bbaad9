"""Rows landed in a folder, as tasks land them."""

from __future__ import annotations

from permalake.pipeline.landing import TaskOutput, Written


def land(folder, tables):
    """Land Arrow tables by name."""
    schemas = {name: rows.schema for name, rows in tables.items()}
    output = TaskOutput([], str(folder), schemas, {})
    for name, rows in tables.items():
        output.land(name, rows)
    written = Written(schemas)
    written.add(output.close().to_pylist())
    return written
