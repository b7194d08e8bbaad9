"""The quarantine rows of days, replaced by those of a query over what was landed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow.dataset as ds

from permalake.contracts import QUARANTINE
from permalake.contracts.quarantine import RAW_LIMIT, whole_in_words
from permalake.contracts.sql_text import alike
from permalake.engine.local_files import sendable
from permalake.lake import Attempt
from permalake.lake.day_rows import DayRows
from permalake.lake.task_files import TaskFiles, WrittenFile
from permalake.net import object_storage
from permalake.pipeline.day_queries import DayQueries, cast, ordered, write
from permalake.pipeline.landing import Written
from permalake.spark.tasks import TaskShare, in_task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NEW, _PUBLISHED = "rejected", "published_rejected"
_KEYS = alike("new", "old", *QUARANTINE.key)
_BOTH = f"FROM {_NEW} AS new FULL JOIN {_PUBLISHED} AS old ON {_KEYS}"
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
_MERGED = f"SELECT {_COLUMNS} FROM {_NEW} AS new LEFT JOIN {_PUBLISHED} AS old ON {_KEYS}"


def quarantine(attempt: Attempt, query: str, landed: Written, spark: Callable[[], SparkSession]) -> int:
    """Replace the quarantine rows of the attempt's days, seen by readers at once; return how many there are.

    ``query`` gives the columns of the quarantine's contract but for ``seen_at``, which keeps its first value;
    rows of other days are left out, and of a long ``raw`` the head is kept. Nothing is written when nothing
    changed.
    """
    days = f"date BETWEEN DATE '{attempt.start}' AND DATE '{attempt.end}'"
    seen_at = datetime.now(UTC)
    within = f"""
SELECT source, origin, reason, {_HEAD} AS raw, date, min({_DETAIL}) AS detail,
       TIMESTAMP '{seen_at}' AS seen_at
FROM ({query}) AS every WHERE {days} GROUP BY source, origin, reason, {_HEAD}, date
"""
    queries = DayQueries({_NEW: within}, {}, landed.datasets)
    [target] = attempt.targets([QUARANTINE])
    file_io = object_storage.file_io()

    def rewrite(published: DayRows) -> list[WrittenFile] | None:
        if not published.count and not queries.has_landed_rows:
            return None
        sent = queries.over(dict[str, ds.Dataset]().__getitem__)
        sent = replace(sent, files={**sent.files, _PUBLISHED: sendable(published.scan())})

        def work(share: TaskShare) -> list[WrittenFile] | None:
            with sent.engine(share) as engine:
                engine.keep(_NEW, sent.tables[_NEW])
                if engine.rows(_DIFFERENT) == [{"rows": 0}]:
                    return None
                engine.keep(QUARANTINE.name, cast(_MERGED, QUARANTINE))
                files = TaskFiles([target], file_io)
                return write(engine, ordered(QUARANTINE.name, QUARANTINE), files, QUARANTINE.name)

        return in_task(spark(), work)

    return attempt.quarantine(rewrite)
