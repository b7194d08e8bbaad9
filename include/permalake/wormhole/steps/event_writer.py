"""Verifies VAAs and writes the tables of events inside Spark's tasks."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from permalake.lake.task_files import FileTarget
from permalake.pipeline.landing import TaskOutput
from permalake.wormhole.reference import load_reference
from permalake.wormhole.tables.copies import distinct_vaas, of_days
from permalake.wormhole.tables.documents import whole_messages
from permalake.wormhole.tables.event_tables import CHAIN_MESSAGES, chain_messages, event_tables
from permalake.wormhole.tables.verified_vaas import ELSEWHERE, REFUSED, judged

REFUSED_VAAS, CONFLICTS, COUNTS = "refused_vaas", "conflicts_elsewhere", "chain_messages"
LANDED = {REFUSED_VAAS: REFUSED, CONFLICTS: ELSEWHERE, COUNTS: CHAIN_MESSAGES}
"""Schemas of what is landed, by name."""


@dataclass(frozen=True)
class EventWriter:
    """What a task does with the documents of the days ``start..end``, which come sorted by ``message``.

    ``reference`` is the directory of additional reference data, ``landing`` the folder of what is landed,
    ``file_io`` are the properties of the access to object storage.
    """

    targets: tuple[FileTarget, ...]
    landing: str
    start: dt.date
    end: dt.date
    reference: Path | None
    file_io: Mapping[str, str]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the tables; return the record of it (:data:`~permalake.pipeline.landing.TOLD`)."""
        reference = load_reference(self.reference)
        output = TaskOutput(self.targets, self.landing, LANDED, self.file_io)
        for group in whole_messages(batches):
            candidates = of_days(distinct_vaas(group), self.start, self.end)
            if not candidates.num_rows:
                continue
            found = judged(candidates, reference)
            for name, rows in event_tables(found):
                output.add(name, rows)
            output.land(REFUSED_VAAS, found.refused)
            output.land(CONFLICTS, found.elsewhere)
            output.land(COUNTS, chain_messages(found))
        yield output.close()
