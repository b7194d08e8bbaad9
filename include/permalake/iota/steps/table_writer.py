"""Writes the tables that follow from decoded rows, and what later passes need, inside Spark's tasks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from permalake.errors import PermalakeError
from permalake.iota.cone.decoded import ARROW, Row
from permalake.iota.cone.touched_outputs import TOUCHED, touched_outputs
from permalake.iota.tables.base_tables import base_tables
from permalake.iota.tables.day_sums import SUMS, day_sums
from permalake.iota.tables.decoded_columns import DecodedRange
from permalake.lake.task_files import FileTarget, TaskFiles, WrittenFile
from permalake.net import object_storage
from permalake.spark.frames import of_rows

_GROUP_BYTES = 64 << 20
_MANIFEST = "landed.json"
MILESTONES, PENDING, PROBLEMS, TOUCHED_OUTPUTS = "milestone_rows", "pending", "problems", "touched_outputs"
LANDED = {MILESTONES: ARROW, PENDING: ARROW, PROBLEMS: ARROW, TOUCHED_OUTPUTS: TOUCHED, **SUMS}
"""Schemas of what is landed, by name: decoded rows that later passes read, and sums that they add up.

``milestone_rows`` are milestones, and the messages that carry one.
"""


@dataclass
class Written:
    """What tasks wrote: files of tables, and the locations of what was landed, by its name."""

    files: list[WrittenFile] = field(default_factory=list)
    landed: dict[str, list[str]] = field(default_factory=dict)

    @property
    def names(self) -> frozenset[str]:
        """Names by which queries read what was landed (:data:`LANDED`)."""
        return frozenset(LANDED)

    def collect(self, told: DataFrame) -> None:
        """Run the tasks and add what they wrote."""
        for row in told.collect():
            self._add(row["landed"], row["file"])

    def add(self, told: Iterable[pa.RecordBatch]) -> None:
        """Add what this process wrote."""
        for batch in told:
            for row in batch.to_pylist():
                self._add(row["landed"], row["file"])

    def _add(self, landed: str | None, file: str) -> None:
        if landed is None:
            self.files.append(WrittenFile.from_text(file))
        else:
            self.landed.setdefault(landed, []).append(file)

    def count(self, name: str) -> int:
        """Return the number of rows under a name, from the files' metadata."""
        return int(self.dataset(name).count_rows()) if self.landed.get(name) else 0

    def frame(self, spark: SparkSession, name: str) -> DataFrame:
        """Return what was landed under a name."""
        schema = from_arrow_schema(LANDED[name])
        if not self.landed.get(name):
            return of_rows(spark, [], schema)
        return spark.read.schema(schema).parquet(*self.landed[name])

    def dataset(self, name: str) -> ds.Dataset:
        """Return the same for this process, without Spark."""
        paths = self.landed.get(name)
        if not paths:
            return ds.dataset(LANDED[name].empty_table())
        return ds.dataset(
            [object_storage.inner_path(path) for path in paths],
            schema=LANDED[name],
            format="parquet",
            filesystem=object_storage.filesystem(paths[0]),
        )


@dataclass(frozen=True)
class TableWriter:
    """What a task does with decoded rows: it writes the tables that follow from them, and lands the rest.

    ``landing`` is the folder of what is landed, ``v_byte_cost`` the rent per weighted byte (base tokens),
    ``file_io`` the properties of the access to object storage.
    """

    targets: tuple[FileTarget, ...]
    landing: str
    chunk_size: int
    v_byte_cost: int | None
    file_io: Mapping[str, str]

    schema = "landed string, file string"

    def __call__(self, groups: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        """Write groups of whole milestones; return the files (:attr:`schema`)."""
        files, landing = TaskFiles(self.targets, self.file_io), _Landing(self.landing)
        done: list[WrittenFile] = []
        for decoded in groups:
            rows = DecodedRange(decoded, self.chunk_size)
            landing.add(MILESTONES, _milestone_rows(decoded))
            landing.add(PENDING, decoded.filter(pc.equal(decoded["kind"], int(Row.PENDING))))
            landing.add(PROBLEMS, decoded.filter(pc.equal(decoded["kind"], int(Row.PROBLEM))))
            landing.add(TOUCHED_OUTPUTS, touched_outputs(rows.included, rows.receipts))
            for name, sums in day_sums(rows, self.v_byte_cost):
                landing.add(name, sums)
            for name, made in base_tables(rows):
                files.add(name, made)
            if decoded.num_rows:
                done += files.complete_before(pc.max(decoded["date"]).as_py())
        done += files.complete()
        landed = landing.close()
        names = [name for name, _ in landed] + [None] * len(done)
        texts = [location for _, location in landed] + [file.to_text() for file in done]
        yield pa.record_batch({"landed": pa.array(names, pa.string()), "file": pa.array(texts, pa.string())})


def _milestone_rows(decoded: pa.Table) -> pa.Table:
    is_message = pc.equal(decoded["kind"], int(Row.BLOCK))
    carries_one = pc.and_(is_message, pc.is_valid(decoded["milestone_id"]))
    return decoded.filter(pc.or_(pc.equal(decoded["kind"], int(Row.MILESTONE)), carries_one))


class _Landing:
    """What a task lands, one file for each name."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._files: dict[str, _LandingFile] = {}

    def add(self, name: str, rows: pa.Table) -> None:
        if rows.num_rows:
            if name not in self._files:
                self._files[name] = _LandingFile(f"{self._folder}/{uuid4()}.parquet", LANDED[name])
            self._files[name].add(rows)

    def close(self) -> list[tuple[str, str]]:
        return [(name, file.close()) for name, file in self._files.items()]


class _LandingFile:
    def __init__(self, location: str, schema: pa.Schema) -> None:
        self._location = location
        system, path = _place(location)
        self._writer = pq.ParquetWriter(
            path, schema, filesystem=system, compression="lz4", use_dictionary=False
        )
        self._held: list[pa.Table] = []
        self._bytes = 0

    def add(self, rows: pa.Table) -> None:
        self._held.append(rows)
        self._bytes += rows.nbytes
        if self._bytes >= _GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        self._writer.write_table(pa.concat_tables(self._held))
        self._held, self._bytes = [], 0

    def close(self) -> str:
        if self._held:
            self._flush()
        self._writer.close()
        return self._location


def keep(landing: str, written: Written) -> None:
    """Note in the landing folder which files count: a task that failed may have left others."""
    system, path = _place(f"{landing}/{_MANIFEST}")
    with system.open_output_stream(path) as file:
        file.write(json.dumps(written.landed).encode())


def landed(landing: str) -> Written:
    """Return what an earlier step kept.

    Raises:
        PermalakeError: if another version of this program landed it.
    """
    system, path = _place(f"{landing}/{_MANIFEST}")
    with system.open_input_stream(path) as file:
        kept = json.loads(file.read())
    if not isinstance(kept, dict):
        raise PermalakeError(f"{path}: another version landed this; run the days again with --force")
    return Written(landed=kept)


def _place(location: str) -> tuple[FileSystem, str]:
    """Return the file system of a file and its path there, in a folder that exists."""
    system, path = object_storage.filesystem(location), object_storage.inner_path(location)
    if not object_storage.is_object_store(location):
        system.create_dir(path.rpartition("/")[0])
    return system, path
