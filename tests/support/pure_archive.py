"""Reads an archive_rest directory and proves its days in this process, without Spark."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema

from permalake.iota.cone.batch import ConeState
from permalake.iota.cone.decoded import ARROW, Row
from permalake.iota.cone.prove import decode, whole_milestones
from permalake.iota.cone.rules import ConeRules
from permalake.iota.cone.source_records import RECORD, Record
from permalake.iota.sources.archive_index import FileSpan, times_of, with_damage
from permalake.iota.sources.archive_lines import archive_rows, milestone_time
from permalake.iota.sources.milestone_times import days_of, span_of
from permalake.pipeline.line_files import line_ranges, read_lines

ROLES = {
    "milestones": Record.MILESTONE,
    "blocks": Record.BLOCK,
    "messages": Record.BLOCK,
    "consumed_outputs": Record.CONSUMED,
    "utxo_changes": Record.CHANGES,
}
SCHEMA = pa.schema([*to_arrow_schema(RECORD), pa.field("context", pa.bool_())])


def files(root):
    """(role, file) of everything that the source reads."""
    found = [(file.name.split(".")[0], file) for file in sorted(Path(root).rglob("*.jsonl*"))]
    return [(ROLES[name], file) for name, file in found if name in ROLES]


def records(root):
    """Records as the cone wants them."""
    return [
        row | {"origin": file.name, "context": False}
        for kind, file in files(root)
        for part in line_ranges([file])
        for row in archive_rows(read_lines(part), kind, 1)
    ]


def days(root, start=date(2000, 1, 1), end=date(2100, 1, 1)):
    """(days, first milestone) of the archive."""
    parts = [part for kind, file in files(root) if kind is Record.MILESTONE for part in line_ranges([file])]
    times = [times_of(part, milestone_time) for part in parts]
    index, time = (np.concatenate([getattr(one, name) for one in times]) for name in ("index", "time"))
    spans = [FileSpan(span_of(one.index, one.time), next(iter(one.damage), None)) for one in times]
    span = span_of(index, time)
    if span is None:
        return [], 0
    return with_damage(days_of(index, time, start, end), start, span.last_date, spans), span.first


def prove(rows: Iterable[dict], protocol, found_days, first, **rules):
    """(decoded rows, problems) of records."""
    table = pa.Table.from_pylist(list(rows), SCHEMA).sort_by(
        [("milestone", "ascending"), ("kind", "ascending")]
    )
    readable = tuple(day for day in found_days if day.has_milestones)
    kept = table.filter(
        pc.and_(
            pc.greater_equal(table["milestone"], readable[0].first),
            pc.less_equal(table["milestone"], readable[-1].last),
        )
    )
    state, out = ConeState(), []
    told = replace(ConeRules(protocol, "smr", readable, first), **rules)
    for part in whole_milestones(kept.to_batches()):
        out += list(decode(part, told, state))
    decoded = pa.Table.from_batches(out, ARROW).to_pylist()
    problems = [row for row in decoded if row["kind"] == Row.PROBLEM]
    return [row for row in decoded if row["kind"] != Row.PROBLEM], problems


def refused(problems, found_days):
    """Dates that stay unpublished."""
    return {day.date for day in found_days if day.fault or day.gaps} | {
        row["date"] for row in problems if row["breaks"]
    }
