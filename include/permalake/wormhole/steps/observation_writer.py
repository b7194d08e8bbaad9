"""Judges observations and writes their table inside Spark's tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from permalake.lake.task_files import FileTarget
from permalake.pipeline.landing import TaskOutput
from permalake.wormhole.contracts.tables import OBSERVATIONS
from permalake.wormhole.reference import load_reference
from permalake.wormhole.tables.documents import whole_messages
from permalake.wormhole.tables.observations import judged_observations
from permalake.wormhole.tables.verified_vaas import REFUSED

REFUSED_OBSERVATIONS = "refused_observations"
LANDED = {REFUSED_OBSERVATIONS: REFUSED}
"""Schemas of what is landed, by name."""


@dataclass(frozen=True)
class ObservationWriter:
    """A task's work on rows of :func:`of_messages`.

    ``landing`` is the folder of what is landed, ``reference`` the directory of additional guardian sets,
    ``file_io`` are the properties of the access to object storage.
    """

    target: FileTarget
    landing: str
    reference: Path | None
    file_io: Mapping[str, str]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the table; return the record of it (:data:`~permalake.pipeline.landing.LANDED_RECORD`)."""
        sets = load_reference(self.reference).guardian_sets
        output = TaskOutput([self.target], self.landing, LANDED, self.file_io)
        for group in whole_messages(batches):
            rows, refused = judged_observations(group, sets)
            output.add(OBSERVATIONS.name, rows)
            output.land(REFUSED_OBSERVATIONS, refused)
        yield output.close()
