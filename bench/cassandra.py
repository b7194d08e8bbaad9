"""Cassandra: published days into every table and view, beside the bare connector with the same rows; and the
cost of a day against the history that is there already.

``python -m bench.cassandra [MESSAGES [PROTOCOL…]]``: a synthetic tangle of fifteen days, kept in
``bench/.data``, into a real Cassandra of this benchmark's own: the first day to warm up, two one by one, ten
at once (these are compared), the last two one by one. Ours reads the lake, shapes and places the rows, keeps
its books and writes; the bare connector writes the finished rows of the same days from Parquet into the same
tables and views of another network, table by table, as its documentation shows, with our settings for
batches and writes in flight (with its own, a server that answers when a write is on disk is mostly idle).
"""

from __future__ import annotations

import gc
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bench.machine import at_rest, say, timed
from bench.store_lake import NETWORK, lake, spark
from permalake.config import CassandraSettings, Settings
from permalake.contracts import cassandra_v1 as chrysalis
from permalake.contracts.cassandra_v1 import PLACES, placed
from permalake.contracts.placement import PERMANODE_PARTITIONS
from permalake.lake import Lake
from permalake.lake.state import Database
from permalake.services import control
from permalake.services.daemon import free_port
from permalake.sinks import cassandra, serve, served
from permalake.sinks.cassandra_days import CassandraDays
from permalake.sinks.pinned import Pinned
from permalake.sinks.placement import CATALOG, Placement
from permalake.sinks.serve import Batch
from permalake.transforms import cassandra_chrysalis
from permalake.transforms.cassandra_stardust import STARDUST_ROWS
from permalake.transforms.partitions import ends_of, lacking, new_segments, with_partition

MESSAGES, DAYS = 150_000, 15
PROTOCOLS = ("stardust", "chrysalis")
_BARE = "bare"
# Days whose rows the bare connector writes too, to tell what the server itself takes longer for.
CONTROL = ("early 2", "late 2")
Finished = list[tuple[str, str, DataFrame]]
_PLACED = (chrysalis.ADDRESSES, chrysalis.INDEXES, chrysalis.PARENTS, chrysalis.HINTS)


def run(messages: int = MESSAGES, protocols: tuple[str, ...] = PROTOCOLS) -> list[dict]:
    """Rows per second into tables with views, ours and the bare connector's; and the cost of a late day
    beside that of an early one."""
    session = spark()
    figures = []
    for protocol in protocols:
        with _server() as server:
            store = CassandraSettings(contact_points=("127.0.0.1",), port=server.port)
            settings = lake(session, protocol, messages, DAYS).model_copy(update={"cassandra": store})
            figures += _measured(session, settings, server, protocol, messages)
    return figures


def _measured(
    spark: SparkSession, settings: Settings, server: control.Server, protocol: str, messages: int
) -> list[dict]:
    record = server.daemon.record()
    assert record is not None
    parts = _parts(settings)
    with tempfile.TemporaryDirectory(prefix="bench-cassandra-") as folder:
        finished, *singles = (
            _finished_rows(spark, settings, protocol, parts[part], Path(folder) / part)
            for part in ("many", *CONTROL)
        )
        rows = sum(frame.count() for _, _, frame in finished)
        cassandra.ensure(settings.cassandra, _BARE, protocol)
        cassandra.ensure(settings.cassandra, NETWORK, protocol)
        _bare(settings, finished[:3])  # loads classes, opens connections; the rows are written once more
        at_rest(record["pid"])
        bare = timed(lambda: _bare(settings, finished))
        days = dict(zip(CONTROL, singles, strict=True))
        seconds = _ours(spark, settings, record["pid"], parts, days)
    many = len(parts["many"])
    early, late = ((seconds[f"{part} 1"] + seconds[f"{part} 2"]) / 2 for part in ("early", "late"))
    bare_early, bare_late = (seconds[f"bare {part}"] for part in CONTROL)
    name = f"{protocol.title()} tangle of {messages * many // DAYS:,} messages"
    return [
        {
            "name": f"{name} into Cassandra, tables with views",
            "unit": "rows/s",
            "ours": round(rows / seconds["many"]),
            "peer": round(rows / bare),
            "peer_name": "the bare connector with finished rows",
            "ratio": round(bare / seconds["many"], 3),
            "rows": rows,
            "seconds": round(seconds["many"], 1),
            "peer_seconds": round(bare, 1),
        },
        {
            "name": f"{protocol.title()}: a day of {messages // DAYS:,} messages into Cassandra after "
            f"{DAYS - 2} days",
            "unit": "s",
            "ours": round(late, 1),
            "peer": round(early, 1),
            "peer_name": "after one day",
            "ratio": round(early / late, 3),
            "ratio_of_the_bare_connector": round(bare_early / bare_late, 3),
            "each": {name: round(value, 1) for name, value in seconds.items() if name != "many"},
        },
    ]


def _parts(settings: Settings) -> dict[str, list[served.DueDay]]:
    """The days in order, in the batches in which they are written."""
    with Database(settings.lake.catalog_uri).write() as connection:
        served.forget(connection, NETWORK, serve.CASSANDRA)
        due = [
            served.DueDay(one.day, one.publication_id, ())
            for one in served.due(connection, NETWORK, serve.CASSANDRA)
        ]
    return {
        "first": due[:1],
        "early 1": due[1:2],
        "early 2": due[2:3],
        "many": due[3:-2],
        "late 1": due[-2:-1],
        "late 2": due[-1:],
    }


def _ours(
    spark: SparkSession,
    settings: Settings,
    pid: int,
    parts: dict[str, list[served.DueDay]],
    singles: dict[str, Finished],
) -> dict[str, float]:
    """Seconds for each part, each begun when the server has compacted what came before; after those of
    ``singles``, their finished rows by the bare connector: what the server itself takes longer for."""
    target = CassandraDays(spark, settings, NETWORK)
    state = Lake(settings).locations(NETWORK)
    # As a lake that was never served: an earlier run of this benchmark has placed its rows.
    Placement(spark, settings, NETWORK)
    spark.sql(f"DELETE FROM {CATALOG}.`{NETWORK}`.{PERMANODE_PARTITIONS.name}")
    micros = time.time_ns() // 1000
    seconds = {}
    for part, days in parts.items():
        # A day has a Java of its own when the DAG writes it: what earlier parts left behind is not its cost.
        gc.collect()
        spark._jvm.System.gc()
        at_rest(pid)
        seconds[part] = timed(lambda: target.write(Batch(NETWORK, days, state, micros)))  # noqa: B023
        if part in singles:
            at_rest(pid)
            seconds[f"bare {part}"] = timed(lambda: _bare(settings, singles[part]))  # noqa: B023
    return seconds


def _finished_rows(
    spark: SparkSession, settings: Settings, protocol: str, days: list[served.DueDay], folder: Path
) -> Finished:
    """Keyspace, table and rows of the days, as they end in the store, in Parquet."""
    tables = dict(Pinned(spark, Lake(settings).locations(NETWORK), [one.day for one in days]))
    tables["spent"] = tables["consumed_outputs"].where("kind = 'legacy'").select("output_id")
    placings = _placings(spark, tables, settings.cassandra.partition_size) if protocol == "chrysalis" else {}
    made = []
    for keyspace, table in placed(_BARE, protocol):
        if table is PLACES:
            continue
        if table in _PLACED:
            rows = placings[table.name]
        elif table in chrysalis.CHRYSALIS_TABLES:
            rows = getattr(cassandra_chrysalis, table.name)(tables)
        else:
            rows = STARDUST_ROWS[table.name](tables)
        file = str(folder / keyspace / table.name)
        rows.write.parquet(file)
        made.append((keyspace, table.name, spark.read.parquet(file)))
    return made


def _placings(spark: SparkSession, tables: dict[str, DataFrame], size: int) -> dict[str, DataFrame]:
    nothing = spark.createDataFrame([], PERMANODE_PARTITIONS.spark)
    found, hints = {}, []
    for variant, (table, _, order) in cassandra_chrysalis.LOOKUPS.items():
        rows = cassandra_chrysalis.lookups(tables)[variant]
        segments = new_segments(lacking(rows, nothing), ends_of(nothing), size)
        lying = with_partition(rows, segments, order)
        found[table.name] = cassandra_chrysalis.placed(variant, lying)
        hints.append(cassandra_chrysalis.hints(lying))
    found["hints"] = hints[0].unionByName(hints[1]).unionByName(hints[2])
    return found


def _bare(settings: Settings, finished: Finished) -> None:
    store = settings.cassandra
    for keyspace, table, rows in finished:
        (
            rows.write.format(cassandra.FORMAT)
            .mode("append")
            .option("spark.cassandra.connection.host", store.contact_points[0])
            .option("spark.cassandra.connection.port", str(store.port))
            .options(keyspace=keyspace, table=table, **cassandra.OUTPUT)
            .save()
        )


@contextmanager
def _server() -> Iterator[control.Server]:
    """A real, empty Cassandra on a free port; stopped and removed at the end."""
    with tempfile.TemporaryDirectory(prefix="bench-cassandra-server-") as folder:
        server = control.servers(free_port(), free_port(), Path(folder))["cassandra"]
        control.up({"cassandra": server}, say, Path(folder))
        try:
            yield server
        finally:
            server.daemon.stop()


if __name__ == "__main__":
    size = int(sys.argv[1]) if len(sys.argv) > 1 else MESSAGES
    print(json.dumps(run(size, tuple(sys.argv[2:]) or PROTOCOLS), indent=1))
