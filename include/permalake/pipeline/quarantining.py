"""The quarantine rows of days, replaced by those of a query over what was landed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as ds

from permalake.contracts import QUARANTINE
from permalake.contracts.quarantine import RAW_LIMIT, whole_in_words
from permalake.engine.local_files import sendable
from permalake.lake import Attempt
from permalake.lake.day_rows import DayRows
from permalake.lake.task_files import FileTarget, TaskFiles, WrittenFile
from permalake.net import object_storage
from permalake.pipeline.day_queries import DayQueries, LandedRows, cast, duckdb_over, ordered, write
from permalake.spark.frames import in_a_task
from permalake.spark.sizes import TASK_MEMORY
from permalake.spark.submit import driver_memory, is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NEW, _KNOWN = "rejected", "known_rejected"
_KEYS = " AND ".join(f"new.{name} IS NOT DISTINCT FROM old.{name}" for name in QUARANTINE.key)
_BOTH = f"FROM {_NEW} AS new FULL JOIN {_KNOWN} AS old ON {_KEYS}"
_DIFFERENT = f"SELECT count(*) AS rows {_BOTH} WHERE new.date IS NULL OR old.date IS NULL OR " + " OR ".join(
    f"new.{name} IS DISTINCT FROM old.{name}"
    for name in QUARANTINE.names
    if name not in (*QUARANTINE.key, *QUARANTINE.first_value)
)
_COLUMNS = ", ".join(
    f"coalesce(old.{name}, new.{name}) AS {name}" if name in QUARANTINE.first_value else f"new.{name}"
    for name in QUARANTINE.names
)
_HEAD = f"raw[1:{RAW_LIMIT}]"
_WHOLE = whole_in_words("' || octet_length(raw) || '", "' || sha256(raw) || '")
_DETAIL = (
    f"CASE WHEN octet_length(raw) > {RAW_LIMIT} THEN concat_ws('; ', detail, '{_WHOLE}') ELSE detail END"
)
_MERGED = f"SELECT {_COLUMNS} FROM {_NEW} AS new LEFT JOIN {_KNOWN} AS old ON {_KEYS}"


def quarantine(attempt: Attempt, query: str, landed: LandedRows, spark: Callable[[], SparkSession]) -> int:
    """Replace the quarantine rows of the attempt's days, seen by readers at once; return how many there are.

    ``query`` gives the columns of the quarantine's contract but for ``seen_at``, which keeps its first value;
    rows of other days are left out, and of a long ``raw`` the head is kept. Nothing is written when nothing
    changed.
    """
    days = f"date BETWEEN DATE '{attempt.start}' AND DATE '{attempt.end}'"
    seen_at = datetime.now(UTC).replace(tzinfo=None)
    within = f"""
SELECT source, origin, reason, {_HEAD} AS raw, date, min({_DETAIL}) AS detail,
       TIMESTAMP '{seen_at}' AS seen_at
FROM ({query}) AS every WHERE {days} GROUP BY source, origin, reason, {_HEAD}, date
"""
    queries = DayQueries({_NEW: within}, {}, landed)
    [target] = attempt.targets([QUARANTINE])

    def rewrite(known: DayRows) -> list[WrittenFile] | None:
        if not known.count and not queries.has_landed_rows:
            return None
        work = _Quarantining(queries, known.scan(), target, object_storage.file_io())
        return work.done(driver_memory()) if is_local() else work.sent(spark())

    return attempt.quarantine(rewrite)


@dataclass(frozen=True)
class _Quarantining:
    """A query of new rows, which become files of ``target`` where they are not those that are ``known``."""

    queries: DayQueries
    known: pa.Table | ds.Dataset
    target: FileTarget
    file_io: Mapping[str, str]

    def done(self, memory: str, threads: int | None = None) -> list[WrittenFile] | None:
        """Return the files, made in this process; None where nothing changed."""
        known = ds.dataset(self.known) if isinstance(self.known, pa.Table) else self.known
        with duckdb_over(self.queries, lambda _: known, memory, threads) as engine:
            engine.open(_KNOWN)
            engine.keep(_NEW, self.queries.tables[_NEW])
            if engine.rows(_DIFFERENT) == [{"rows": 0}]:
                return None
            engine.keep(QUARANTINE.name, cast(_MERGED, QUARANTINE))
            files = TaskFiles([self.target], self.file_io)
            return write(engine, ordered(QUARANTINE.name, QUARANTINE), files, QUARANTINE.name)

    def sent(self, spark: SparkSession) -> list[WrittenFile] | None:
        """Return the same, made in a task."""
        work = replace(self, queries=self.queries.sendable, known=sendable(self.known))

        def task() -> Iterator[pa.RecordBatch]:
            written = work.done(TASK_MEMORY, 1)
            texts = [None] if written is None else [file.to_text() for file in written]
            yield pa.RecordBatch.from_arrays([pa.array(texts, pa.string())], ["file"])

        told = [row["file"] for row in in_a_task(spark, task, "file string").collect()]
        return None if told == [None] else [WrittenFile.from_text(text) for text in told]
