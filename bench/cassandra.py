"""Cassandra: published days into every table and view, beside the bare connector with the same rows; and the
cost of a day against the history that is there already.

``python -m bench.cassandra [MESSAGES [PROTOCOL…]]``: a synthetic tangle of eleven days, kept in
``bench/.data``, into a real Cassandra of this benchmark's own. Ours reads the lake, shapes and places the
rows, keeps its books and writes; the bare connector writes the finished rows from Parquet into the same
tables and views of another network, table by table, as its documentation shows, with our settings for
batches and writes in flight (with its own, a server that answers when a write is on disk is mostly idle).
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bench.machine import say, timed
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

MESSAGES, DAYS = 110_000, 11
PROTOCOLS = ("stardust", "chrysalis")
_BARE = "bare"
_PLACED = (chrysalis.ADDRESSES, chrysalis.INDEXES, chrysalis.PARENTS, chrysalis.HINTS)


def run(messages: int = MESSAGES, protocols: tuple[str, ...] = PROTOCOLS) -> list[dict]:
    """Rows per second into tables with views, ours and the bare connector's; and the cost of the eleventh
    day beside that of the second."""
    session = spark()
    figures = []
    for protocol in protocols:
        with _server() as store:
            settings = lake(session, protocol, messages, DAYS).model_copy(update={"cassandra": store})
            figures += _measured(session, settings, protocol, messages)
    return figures


def _measured(spark: SparkSession, settings: Settings, protocol: str, messages: int) -> list[dict]:
    with tempfile.TemporaryDirectory(prefix="bench-cassandra-") as folder:
        finished = _finished_rows(spark, settings, protocol, Path(folder))
        rows = sum(frame.count() for _, _, frame in finished)
        cassandra.ensure(settings.cassandra, _BARE, protocol)
        cassandra.ensure(settings.cassandra, NETWORK, protocol)
        _bare(settings, finished[:3])  # loads classes, opens connections; the rows are written once more
        bare = timed(lambda: _bare(settings, finished))
    seconds = _ours(spark, settings)
    ours = sum(seconds.values())
    name = f"{protocol.title()} tangle of {messages:,} messages"
    return [
        {
            "name": f"{name} into Cassandra, tables with views",
            "unit": "rows/s",
            "ours": round(rows / ours),
            "peer": round(rows / bare),
            "peer_name": "the bare connector with finished rows",
            "ratio": round(bare / ours, 3),
            "rows": rows,
            "seconds": round(ours, 1),
            "peer_seconds": round(bare, 1),
        },
        {
            "name": f"{name}: the eleventh day into Cassandra",
            "unit": "s",
            "ours": round(seconds["last"], 1),
            "peer": round(seconds["second"], 1),
            "peer_name": "the second day",
            "ratio": round(seconds["second"] / seconds["last"], 3),
        },
    ]


def _ours(spark: SparkSession, settings: Settings) -> dict[str, float]:
    """Seconds for the first day, the second, those up to the last but one, and the last."""
    target = CassandraDays(spark, settings, NETWORK)
    state = Lake(settings).locations(NETWORK)
    database = Database(settings.lake.catalog_uri)
    with database.write() as connection:
        served.forget(connection, NETWORK, serve.CASSANDRA)
        due = [
            served.DueDay(one.day, one.publication_id, ())
            for one in served.due(connection, NETWORK, serve.CASSANDRA)
        ]
    # As a lake that was never served: an earlier run of this benchmark has placed its rows.
    Placement(spark, settings, NETWORK)
    spark.sql(f"DELETE FROM {CATALOG}.`{NETWORK}`.{PERMANODE_PARTITIONS.name}")
    parts = {"first": due[:1], "second": due[1:2], "middle": due[2:-1], "last": due[-1:]}
    micros = time.time_ns() // 1000
    return {
        part: timed(lambda: target.write(Batch(NETWORK, days, state, micros)))  # noqa: B023
        for part, days in parts.items()
    }


def _finished_rows(
    spark: SparkSession, settings: Settings, protocol: str, folder: Path
) -> list[tuple[str, str, DataFrame]]:
    """Keyspace, table and rows, as they end in the store, in Parquet."""
    whole = Pinned(spark, Lake(settings).locations(NETWORK))
    tables = dict(whole)
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


def _bare(settings: Settings, finished: list[tuple[str, str, DataFrame]]) -> None:
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
def _server() -> Iterator[CassandraSettings]:
    """A real, empty Cassandra on a free port; stopped and removed at the end."""
    with tempfile.TemporaryDirectory(prefix="bench-cassandra-server-") as folder:
        server = control.servers(free_port(), free_port(), Path(folder))["cassandra"]
        control.up({"cassandra": server}, say, Path(folder))
        try:
            yield CassandraSettings(contact_points=("127.0.0.1",), port=server.port)
        finally:
            server.daemon.stop()


if __name__ == "__main__":
    size = int(sys.argv[1]) if len(sys.argv) > 1 else MESSAGES
    print(json.dumps(run(size, tuple(sys.argv[2:]) or PROTOCOLS), indent=1))
