"""How a key's rows should be split into partitions, measured on one spam tag: not at all, into a fixed
number of them, or into partitions of a fixed size that are filled one after another.

``python -m bench.partitions [MESSAGES]``: as many synthetic messages with one tag, published in ten days,
into the table ``indexes`` of a real Cassandra of this benchmark's own, keyed in each of the three ways.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from cassandra.cluster import Session
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.machine import timed
from bench.store_lake import spark
from permalake.config.stores import CassandraSettings
from permalake.contracts.cql import StoreTable, create_keyspace
from permalake.iota.permanode.chrysalis_schema import HINTS, INDEXES
from permalake.local.services.cassandra import Cassandra
from permalake.local.services.control import LIBRARY
from permalake.local.services.daemon import free_port
from permalake.stores import cassandra

MESSAGES, DAYS, PAGE = 5_000_000, 10, 100
FIXED, SIZE = 16, 100_000
_TAG = b"spam".hex()
_PER_MILESTONE = 50
_KEYSPACE = "partitions"
_REPEATS = 20
_MICROS = 1_700_000_000_000_000


@dataclass(frozen=True)
class Variant:
    """A way to split: its name, and the partition of the message with a number."""

    name: str
    partition: Callable[[Column], Column] | None

    @property
    def table(self) -> StoreTable:
        """``indexes``, keyed this way."""
        if self.partition is not None:
            return replace(INDEXES, name=f"indexes_{self.name}")
        columns = {name: kind for name, kind in INDEXES.columns.items() if name != "partition_id"}
        return replace(INDEXES, name=f"indexes_{self.name}", columns=columns, partition=("indexation",))


VARIANTS = (
    Variant("none", None),
    Variant("fixed", lambda number: F.pmod(F.hash(number), F.lit(FIXED))),
    Variant("size", lambda number: F.floor(number / SIZE)),
)

_WARM = Variant("warm", lambda number: number * 0)


@dataclass(frozen=True)
class CassandraWithJmx(Cassandra):
    """The server, with the port that nodetool asks."""

    jmx: int = 0

    def _command(self, settings: Path) -> list[str]:
        java, *rest = super()._command(settings)
        return [java, f"-Dcassandra.jmx.local.port={self.jmx}", *rest]

    def tool(self, *arguments: str) -> None:
        """Run nodetool."""
        java, *options = super()._command(self.folder)
        opened = [option for option in options if option.startswith("--add-")]
        command = [java, *opened, "-cp", f"{self._jars}/*", "org.apache.cassandra.tools.NodeTool"]
        command += ["-h", "127.0.0.1", "-p", str(self.jmx), *arguments]
        subprocess.run(command, stdout=2, check=True)


def run(messages: int = MESSAGES) -> list[dict]:
    """Per variant: seconds to write, partition sizes, seconds per page, to rebuild a day, to compact."""
    session = spark()
    with _server() as server:
        settings = CassandraSettings(contact_points=("127.0.0.1",), port=server.port)
        with cassandra.session(settings) as connected:
            connected.execute(create_keyspace(_KEYSPACE, settings.local_dc, 1))
            # All before the connector opens its session: it learns of later ones with a delay.
            for table in (HINTS, *(variant.table for variant in (_WARM, *VARIANTS))):
                for statement in table.ddl(_KEYSPACE):
                    connected.execute(statement)
        # Loads classes and opens connections.
        _write(session, settings, _WARM, 0, 5000)
        return [_measured(session, settings, server, variant, messages) for variant in VARIANTS]


def _measured(
    spark: SparkSession,
    settings: CassandraSettings,
    server: CassandraWithJmx,
    variant: Variant,
    messages: int,
) -> dict:
    table, day = variant.table, messages // DAYS
    writing = [
        timed(lambda: _write(spark, settings, variant, first, day))  # noqa: B023
        for first in range(0, messages, day)
    ]
    server.tool("flush", _KEYSPACE)
    compacting = timed(lambda: server.tool("compact", _KEYSPACE, table.name))
    with cassandra.session(settings) as connected:
        reader = Reader(connected, variant, messages)
        first = reader.timed(0)
        deep = reader.timed(messages // 5)
        largest = _largest_mib(connected, table.name)
    # The middle day once more, a hundredth of its rows gone.
    rebuilding = timed(
        lambda: _write(spark, settings, variant, messages // 2, day, micros=_MICROS + 10, rebuilt=True)
    )
    server.tool("flush", _KEYSPACE)
    again = timed(lambda: server.tool("compact", _KEYSPACE, table.name))
    with cassandra.session(settings) as connected:
        connected.execute(f"DROP TABLE {_KEYSPACE}.{table.name}", timeout=120)
    return {
        "name": f"partitions of a tag with {messages:,} messages: {variant.name}",
        "unit": "rows/s",
        "ours": round(messages / sum(writing)),
        "first_day_seconds": round(writing[0], 1),
        "last_day_seconds": round(writing[-1], 1),
        "largest_partition_mib": largest,
        "partitions": {"none": 1, "fixed": FIXED, "size": -(-messages // SIZE)}[variant.name],
        "first_page_ms": first,
        "deep_page_ms": deep,
        "rebuild_day_seconds": round(rebuilding, 1),
        "compaction_seconds": round(compacting, 1),
        "compaction_after_rebuild_seconds": round(again, 1),
    }


def _write(
    spark: SparkSession,
    settings: CassandraSettings,
    variant: Variant,
    first: int,
    count: int,
    *,
    micros: int = _MICROS,
    rebuilt: bool = False,
) -> None:
    """Messages ``first`` to ``first + count``; a rebuilt day deletes a hundredth of them."""
    table = variant.table
    rows = _rows(spark, variant, first, count)
    if rebuilt:
        gone = F.pmod(F.col("number"), F.lit(100)) == 7
        cassandra.delete(rows.where(gone), settings, _KEYSPACE, table, micros - 1)
        rows = rows.where(~gone)
    cassandra.write(rows.select(*table.columns), settings, _KEYSPACE, table, micros)
    if "partition_id" in table.columns:
        # The tables share one table of hints; each has its own key in it.
        hints = rows.groupBy(
            F.lit(variant.name).alias("hint"), F.lit("index").alias("variant"), "partition_id"
        )
        newest = hints.agg(F.max("milestone_index").alias("milestone_index"))
        cassandra.write(newest, settings, _KEYSPACE, HINTS, micros)


def _rows(spark: SparkSession, variant: Variant, first: int, count: int) -> DataFrame:
    number = F.col("id")
    partition = variant.partition(number) if variant.partition else F.lit(0)
    return spark.range(first, first + count, 1, 4).select(
        number.alias("number"),
        F.lit(_TAG).alias("indexation"),
        partition.cast("smallint").alias("partition_id"),
        F.floor(number / _PER_MILESTONE).cast("int").alias("milestone_index"),
        F.sha2(number.cast("string"), 256).alias("message_id"),
        F.unhex(F.lit("02")).alias("inclusion_state"),
        F.timestamp_seconds(F.lit(1_620_000_000) + F.floor(number / _PER_MILESTONE) * 10).alias("updated_at"),
    )


class Reader:
    """Pages of a tag, newest first."""

    def __init__(self, connected: Session, variant: Variant, messages: int) -> None:
        self._connected = connected
        self._variant = variant
        self._newest = messages // _PER_MILESTONE
        split = "AND partition_id = ? " if variant.partition else ""
        self._page = connected.prepare(
            f"SELECT milestone_index, message_id FROM {_KEYSPACE}.{variant.table.name} WHERE indexation = ? "
            f"{split}AND milestone_index <= ? LIMIT {PAGE}"
        )
        self._hints = connected.prepare(
            f"SELECT partition_id FROM {_KEYSPACE}.hints WHERE hint = ? AND variant = 'index'"
        )

    def page(self, skipped: int) -> list[tuple[int, str]]:
        """The hundred rows after ``skipped`` newer ones, as a cursor finds them: by its milestone."""
        until = self._newest - skipped // _PER_MILESTONE - 1
        if self._variant.name == "none":
            return list(self._connected.execute(self._page, (_TAG, until)))
        # A first page asks for the partitions; the cursor of a later one may hold them.
        places = sorted(
            row.partition_id for row in self._connected.execute(self._hints, (self._variant.name,))
        )
        if self._variant.name == "fixed":
            asked = [self._connected.execute_async(self._page, (_TAG, place, until)) for place in places]
            merged = [row for one in asked for row in one.result()]
            return sorted(merged, key=lambda row: (-row.milestone_index, row.message_id))[:PAGE]
        found: list = []
        last = until * _PER_MILESTONE // SIZE
        for place in reversed([place for place in places if place <= last]):
            found += self._connected.execute(self._page, (_TAG, place, until))
            if len(found) >= PAGE:
                break
        return found[:PAGE]

    def timed(self, skipped: int) -> float:
        """Median milliseconds of a page."""
        seconds = []
        for number in range(_REPEATS):
            began = time.monotonic()
            rows = self.page(skipped + number * PAGE)
            seconds.append(time.monotonic() - began)
            assert len(rows) == PAGE, (self._variant.name, skipped, len(rows))
        return round(1000 * statistics.median(seconds), 2)


def _largest_mib(connected: Session, table: str) -> int:
    rows = connected.execute("SELECT * FROM system_views.max_partition_size")
    return next(row.mebibytes for row in rows if (row.keyspace_name, row.table_name) == (_KEYSPACE, table))


@contextmanager
def _server() -> Iterator[CassandraWithJmx]:
    """A real, empty Cassandra on a free port; stopped and removed at the end."""
    with tempfile.TemporaryDirectory(prefix="bench-partitions-") as folder:
        server = CassandraWithJmx(Path(folder), LIBRARY, free_port(), free_port())
        server.fetch()
        server.up()
        try:
            yield server
        finally:
            server.daemon.stop()


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]) if len(sys.argv) > 1 else MESSAGES), indent=1))
