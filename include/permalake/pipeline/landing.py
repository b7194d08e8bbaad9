"""Output of Spark's tasks: files of tables, and rows landed beside them for later passes.

A task writes through a :class:`TaskOutput` and returns its record of it; the driver gathers the records of
the tasks that succeeded in :class:`Written`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from permalake.errors import PermalakeError
from permalake.lake.task_files import FileTarget, TaskFiles, WrittenFile
from permalake.net import object_storage
from permalake.spark.frames import of_rows

LANDED_RECORD = "landed string, file string"
"""Schema of a task's record: the location of what was landed with its name, or a table's file as text."""

_GROUP_BYTES = 64 << 20
_MANIFEST = "landed.json"


@dataclass
class Written:
    """The output of tasks: files of tables, and the locations of landed rows, by name.

    ``schemas`` are those of what may be landed.
    """

    schemas: Mapping[str, pa.Schema]
    files: list[WrittenFile] = field(default_factory=list)
    landed: dict[str, list[str]] = field(default_factory=dict)

    def collect(self, files: DataFrame) -> None:
        """Run the tasks and add what they wrote."""
        self.add(row.asDict() for row in files.collect())

    def add(self, records: Iterable[Mapping[str, str]]) -> None:
        """Add the records of a task (:data:`LANDED_RECORD`)."""
        for record in records:
            if record["landed"]:
                self.landed.setdefault(record["landed"], []).append(record["file"])
            else:
                self.files.append(WrittenFile.from_text(record["file"]))

    def count(self, name: str) -> int:
        """Return the number of rows under a name, from the files' metadata."""
        return int(self.dataset(name).count_rows()) if self.landed.get(name) else 0

    def frame(self, spark: SparkSession, name: str) -> DataFrame:
        """Return what was landed under a name."""
        schema = from_arrow_schema(self.schemas[name])
        if not self.landed.get(name):
            return of_rows(spark, [], schema)
        return spark.read.schema(schema).parquet(*self.landed[name])

    def dataset(self, name: str) -> ds.Dataset:
        """Return the same for this process, without Spark."""
        return self._opened(name, self.landed.get(name, []))

    @property
    def datasets(self) -> dict[str, ds.Dataset]:
        """All that was landed, by its name."""
        return {name: self.dataset(name) for name in self.schemas}

    def parts(self, name: str, rows: int) -> list[ds.Dataset]:
        """Return the same in parts of about so many rows, each of whole files in their order."""
        parts: list[list[str]] = []
        room = 0
        for path in self.landed.get(name, ()):
            if room <= 0:
                parts.append([])
                room = rows
            parts[-1].append(path)
            room -= self._opened(name, [path]).count_rows()
        return [self._opened(name, part) for part in parts]

    def _opened(self, name: str, paths: list[str]) -> ds.Dataset:
        return object_storage.parquet_files(paths, self.schemas[name])

    def keep(self, landing: str) -> None:
        """Note in the landing folder which files count: a task that failed may have left others."""
        system, path = _place(f"{landing}/{_MANIFEST}")
        with system.open_output_stream(path) as file:
            file.write(json.dumps(self.landed).encode())

    @classmethod
    def kept(cls, landing: str, schemas: Mapping[str, pa.Schema]) -> Self:
        """Return what an earlier step kept.

        Raises:
            PermalakeError: if another version of this program landed it.
        """
        system, path = _place(f"{landing}/{_MANIFEST}")
        with system.open_input_stream(path) as file:
            kept = json.loads(file.read())
        if not isinstance(kept, dict):
            raise PermalakeError(f"{path}: another version landed this; run the days again with --force")
        return cls(schemas, landed=kept)


class TaskOutput:
    """The files of tables that one task writes, and what it lands: one file for each name.

    ``landing`` is the folder of what is landed, ``schemas`` what may be; ``file_io`` are the properties of
    the access to object storage.
    """

    def __init__(
        self,
        targets: Iterable[FileTarget],
        landing: str,
        schemas: Mapping[str, pa.Schema],
        file_io: Mapping[str, str],
    ) -> None:
        self._folder = landing
        self._schemas = schemas
        self._landed: dict[str, _LandingFile] = {}
        self._files = TaskFiles(targets, file_io)
        self._done: list[WrittenFile] = []

    def land(self, name: str, rows: pa.Table) -> None:
        """Add rows to what is landed under a name."""
        if rows.num_rows:
            if name not in self._landed:
                location = f"{self._folder}/{uuid4()}.parquet"
                self._landed[name] = _LandingFile(location, self._schemas[name])
            self._landed[name].add(rows)

    def add(self, table: str, rows: pa.Table) -> None:
        """Add rows to a table."""
        self._files.add(table, rows)

    def end_days_before(self, newest: pa.ChunkedArray) -> None:
        """Complete the files of days before the latest of these dates: rows come day by day."""
        if len(newest):
            self._done += self._files.complete_before(pc.max(newest).as_py())

    def close(self) -> pa.RecordBatch:
        """Complete everything; return the record of it (:data:`LANDED_RECORD`)."""
        done = [*self._done, *self._files.complete()]
        names = [*self._landed, *(None for _ in done)]
        texts = [*(file.close() for file in self._landed.values()), *(file.to_text() for file in done)]
        return pa.record_batch({"landed": pa.array(names, pa.string()), "file": pa.array(texts, pa.string())})


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


def _place(location: str) -> tuple[FileSystem, str]:
    """Return the file system of a file and its path there, in a folder that exists."""
    system, path = object_storage.filesystem(location), object_storage.inner_path(location)
    if not object_storage.is_object_store(location):
        system.create_dir(path.rpartition("/")[0])
    return system, path
