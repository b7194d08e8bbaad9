"""Writes decoded rows and the tables that follow from them, inside Spark's tasks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem
from pyspark.sql import DataFrame, SparkSession

from permalake.iota.cone.decoded import ARROW, DECODED, Row
from permalake.iota.tables.base_tables import base_tables
from permalake.lake.task_files import FileTarget, TaskFiles, WrittenFile
from permalake.net import object_storage
from permalake.spark.frames import of_rows

_GROUP_BYTES = 64 << 20
_MANIFEST = "landed.json"


@dataclass
class Written:
    """What tasks wrote: files of tables, and of decoded rows (their locations)."""

    files: list[WrittenFile] = field(default_factory=list)
    landed: list[str] = field(default_factory=list)

    def collect(self, told: DataFrame) -> None:
        """Run the tasks and add what they wrote."""
        for row in told.collect():
            if row["file"] is None:
                self.landed.append(row["landed"])
            else:
                self.files.append(WrittenFile.from_text(row["file"]))

    def decoded(self, spark: SparkSession) -> DataFrame:
        """Return the decoded rows."""
        if not self.landed:
            return of_rows(spark, [], DECODED)
        return spark.read.schema(DECODED).parquet(*self.landed)


@dataclass(frozen=True)
class TableWriter:
    """What a task does with decoded rows: it writes them, and the tables that follow from them.

    ``landing`` is the folder of the decoded rows, ``file_io`` the properties of the access to object storage.
    """

    targets: tuple[FileTarget, ...]
    landing: str
    chunk_size: int
    file_io: Mapping[str, str]

    schema = "landed string, file string"

    def __call__(self, groups: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        """Write groups of whole milestones; return the files (:attr:`schema`)."""
        files, landing = TaskFiles(self.targets, self.file_io), _Landing(self.landing)
        done: list[WrittenFile] = []
        for decoded in groups:
            landing.add(decoded)
            for name, rows in base_tables(decoded, self.chunk_size):
                files.add(name, rows)
            if decoded.num_rows:
                done += files.complete_before(pc.max(decoded["date"]).as_py())
        done += files.complete()
        landed = landing.close()
        nothing = [None] * len(landed)
        texts = [file.to_text() for file in done]
        yield pa.record_batch(
            {
                "landed": pa.array(landed + [None] * len(texts), pa.string()),
                "file": pa.array(nothing + texts, pa.string()),
            }
        )


class _Landing:
    """Decoded rows on their way into files: messages apart from other rows, which few readers want."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._files: dict[bool, _LandingFile] = {}

    def add(self, decoded: pa.Table) -> None:
        is_message = pc.equal(decoded["kind"], int(Row.BLOCK))
        for messages, wanted in ((True, is_message), (False, pc.invert(is_message))):
            rows = decoded.filter(wanted)
            if rows.num_rows:
                if messages not in self._files:
                    self._files[messages] = _LandingFile(f"{self._folder}/{uuid4()}.parquet")
                self._files[messages].add(rows)

    def close(self) -> list[str]:
        return [file.close() for file in self._files.values()]


class _LandingFile:
    def __init__(self, location: str) -> None:
        self._location = location
        system, path = _place(location)
        self._writer = pq.ParquetWriter(
            path, ARROW, filesystem=system, compression="lz4", use_dictionary=False
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
    """Note in the landing folder which files hold decoded rows: a task that failed may have left others."""
    system, path = _place(f"{landing}/{_MANIFEST}")
    with system.open_output_stream(path) as file:
        file.write(json.dumps(written.landed).encode())


def landed(spark: SparkSession, landing: str) -> DataFrame:
    """Return the decoded rows that an earlier step kept."""
    system, path = _place(f"{landing}/{_MANIFEST}")
    with system.open_input_stream(path) as file:
        return Written(landed=json.loads(file.read())).decoded(spark)


def _place(location: str) -> tuple[FileSystem, str]:
    """Return the file system of a file and its path there, in a folder that exists."""
    system, path = object_storage.filesystem(location), object_storage.inner_path(location)
    if not object_storage.is_object_store(location):
        system.create_dir(path.rpartition("/")[0])
    return system, path
