"""Writes the tables that follow from decoded rows, and what later passes need, inside Spark's tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from permalake.iota.cone.batch import undecodable
from permalake.iota.cone.decoded import ARROW, Row
from permalake.iota.cone.decoded_rows import problem_rows
from permalake.iota.cone.touched_outputs import TOUCHED, touched_outputs
from permalake.iota.tables.base_tables import base_tables
from permalake.iota.tables.day_sums import SUMS, day_sums
from permalake.iota.tables.decoded_columns import DecodedRange
from permalake.lake.task_files import FileTarget
from permalake.pipeline.landing import LANDED_RECORD, TaskOutput

MILESTONES, PENDING, PROBLEMS, TOUCHED_OUTPUTS = "milestone_rows", "pending", "problems", "touched_outputs"
Named = list[tuple[str, pa.Table]]
LANDED = {MILESTONES: ARROW, PENDING: ARROW, PROBLEMS: ARROW, TOUCHED_OUTPUTS: TOUCHED, **SUMS}
"""Schemas of what is landed, by name: decoded rows that later passes read, and sums that they add up.

``milestone_rows`` are milestones, and the messages that carry one.
"""


@dataclass(frozen=True)
class TableWriter:
    """A task's work on decoded rows: it writes the tables that follow from them, and lands the rest.

    ``landing`` is the folder of what is landed, ``v_byte_cost`` the rent per weighted byte (base tokens),
    ``file_io`` the properties of the access to object storage.
    """

    targets: tuple[FileTarget, ...]
    landing: str
    chunk_size: int
    v_byte_cost: int | None
    file_io: Mapping[str, str]

    schema = LANDED_RECORD

    def __call__(self, groups: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        """Write groups of whole milestones; return the files (:attr:`schema`)."""
        output = TaskOutput(self.targets, self.landing, LANDED, self.file_io)
        for decoded in groups:
            for landed, tables in self._rows(decoded):
                for name, made in landed:
                    output.land(name, made)
                for name, made in tables:
                    output.add(name, made)
            output.end_days_before(decoded["date"])
        yield output.close()

    def _rows(self, decoded: pa.Table) -> Iterator[tuple[Named, Named]]:
        """Yield what is landed and the rows of tables, by name.

        When something raises, the milestones are halved until the one that it raises for is alone: it refuses
        its day.
        """
        try:
            made = self._made(decoded)
        except (MemoryError, OSError):
            raise  # says nothing of a milestone
        except Exception as error:  # noqa: BLE001
            index = decoded["milestone_index"]
            first, last = pc.min(index).as_py(), pc.max(index).as_py()
            if first == last:
                problem = problem_rows([undecodable(first, error)], [decoded["date"][0].as_py()])
                yield [(PROBLEMS, pa.Table.from_batches([problem], ARROW))], []
                return
            is_early = pc.less_equal(index, (first + last) // 2)
            yield from self._rows(decoded.filter(is_early))
            yield from self._rows(decoded.filter(pc.invert(is_early)))
        else:
            yield made

    def _made(self, decoded: pa.Table) -> tuple[Named, Named]:
        rows = DecodedRange(decoded, self.chunk_size)
        landed = [
            (MILESTONES, _milestone_rows(decoded)),
            (PENDING, decoded.filter(pc.equal(decoded["kind"], int(Row.PENDING)))),
            (PROBLEMS, decoded.filter(pc.equal(decoded["kind"], int(Row.PROBLEM)))),
            (TOUCHED_OUTPUTS, touched_outputs(rows.included, rows.receipts)),
            *day_sums(rows, self.v_byte_cost),
        ]
        targets = {target.table: target for target in self.targets}
        return landed, [(name, targets[name].checked(made)) for name, made in base_tables(rows)]


def _milestone_rows(decoded: pa.Table) -> pa.Table:
    is_message = pc.equal(decoded["kind"], int(Row.BLOCK))
    carries_one = pc.and_(is_message, pc.is_valid(decoded["milestone_id"]))
    return decoded.filter(pc.or_(pc.equal(decoded["kind"], int(Row.MILESTONE)), carries_one))
