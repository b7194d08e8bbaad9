"""Cassandra: published days into every table and view, beside the bare connector with the same rows; and the
cost of a day against the history that is there already.

``python -m bench.cassandra [MESSAGES [PROTOCOL…]]``: a synthetic tangle of 64 days, kept in ``bench/.data``,
into a real Cassandra of this benchmark's own: twelve days to warm up, four one by one, 22 at once twice
(their rows per second are compared), the last four one by one. Ours reads the lake, shapes and places the
rows, keeps its books and writes; the bare connector writes the finished rows of the same days from Parquet
into the same tables and views of another network, table by table, as its documentation shows, with our
settings for batches and writes in flight (with its own, a server that answers when a write is on disk is
mostly idle). Who comes first pays for the compilers of both Javas, a third more processor time as measured:
they take turns. What it takes longer for late days is the server's own growth, not ours.
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bench.machine import at_rest, say, timed
from bench.store_lake import NETWORK, lake, spark
from permalake.config import Settings
from permalake.config.stores import CassandraSettings
from permalake.domains import open_reader
from permalake.iota.permanode import chrysalis_rows
from permalake.iota.permanode import chrysalis_schema as chrysalis
from permalake.iota.permanode.chrysalis_schema import PLACES, placed
from permalake.iota.permanode.partitions import ends_of, lacking, new_segments, with_partition
from permalake.iota.permanode.permanode_writer import CassandraDays
from permalake.iota.permanode.placement import PERMANODE_PARTITIONS, Placement
from permalake.iota.permanode.stardust_rows import STARDUST_ROWS
from permalake.iota.permanode.store import ensure_keyspaces
from permalake.lake.database import Database
from permalake.lake.state import STORES
from permalake.local.services import control
from permalake.local.services.daemon import free_port
from permalake.stores import cassandra, served
from permalake.stores.batch import StoreBatch
from permalake.stores.pinned import Pinned

MESSAGES, DAYS, SINGLES, WARMING = 128_000, 64, 4, 12
PROTOCOLS = ("stardust", "chrysalis")
_BARE = "bare"
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
        finished = {
            part: _finished_rows(spark, settings, protocol, days, Path(folder) / part)
            for part, days in parts.items()
        }
        many = [part for part in parts if part.startswith("many")]
        rows = sum(frame.count() for part in many for _, _, frame in finished[part])
        ensure_keyspaces(settings.cassandra, _BARE, protocol)
        ensure_keyspaces(settings.cassandra, NETWORK, protocol)
        ours, bare = _seconds(spark, settings, record["pid"], parts, finished)
    ours_many, bare_many = (sum(seconds[part] for part in many) for seconds in (ours, bare))
    days, history = sum(len(parts[part]) for part in many), sum(map(len, parts.values())) - SINGLES
    early, late, bare_early, bare_late = (
        statistics.median(value for part, value in seconds.items() if part.startswith(when))
        for seconds in (ours, bare)
        for when in ("early", "late")
    )
    name = f"{protocol.title()} tangle of {messages * days // DAYS:,} messages"
    return [
        {
            "name": f"{name} into Cassandra, tables with views",
            "unit": "rows/s",
            "ours": round(rows / ours_many),
            "peer": round(rows / bare_many),
            "peer_name": "the bare connector with finished rows",
            "ratio": round(bare_many / ours_many, 3),
            "rows": rows,
            "seconds": round(ours_many, 1),
            "peer_seconds": round(bare_many, 1),
        },
        {
            "name": f"{protocol.title()}: a day of {messages // DAYS:,} messages into Cassandra after "
            f"{history} days",
            "unit": "s",
            "ours": round(late, 1),
            "peer": round(early, 1),
            "peer_name": f"after {WARMING} to {WARMING + SINGLES - 1} days",
            "ratio": round(early / late, 3),
            "ratio_of_the_bare_connector": round(bare_early / bare_late, 3),
            "each": {part: round(value, 1) for part, value in ours.items()},
            "each_of_the_bare_connector": {part: round(value, 1) for part, value in bare.items()},
        },
    ]


def _parts(settings: Settings) -> dict[str, list[served.DueDay]]:
    """The days in order, in the batches in which they are written."""
    with Database(settings.lake.catalog_uri).write() as connection:
        served.forget(connection, NETWORK, "cassandra")
        due = [
            served.DueDay(one.day, one.publication_id, ())
            for one in served.due(connection, NETWORK, "cassandra")
        ]
    early, many, late = due[WARMING:][:SINGLES], due[WARMING + SINGLES : -SINGLES], due[-SINGLES:]
    half = len(many) // 2
    return {
        "warming": due[:WARMING],
        **{f"early {number}": [day] for number, day in enumerate(early, 1)},
        "many 1": many[:half],
        "many 2": many[half:],
        **{f"late {number}": [day] for number, day in enumerate(late, 1)},
    }


def _seconds(
    spark: SparkSession,
    settings: Settings,
    pid: int,
    parts: dict[str, list[served.DueDay]],
    finished: dict[str, Finished],
) -> tuple[dict[str, float], dict[str, float]]:
    """Seconds for each part, ours and the bare connector's, each begun when the server has compacted what
    came before; the one is the first in every other part."""
    target = CassandraDays(spark, settings, NETWORK)
    state = open_reader(settings).locations(NETWORK)
    # As a lake that was never served: an earlier run of this benchmark has placed its rows.
    Placement(spark, settings, NETWORK)
    spark.sql(f"DELETE FROM {STORES}.`{NETWORK}`.{PERMANODE_PARTITIONS.name}")
    micros = time.time_ns() // 1000
    ours, bare = {}, {}
    for number, (part, days) in enumerate(parts.items()):
        batch = StoreBatch(NETWORK, days, state, micros)
        turns = [(ours, partial(target.write, batch)), (bare, partial(_bare, settings, finished[part]))]
        for seconds, write in turns if number % 2 else reversed(turns):
            # A day has a Java of its own when the DAG writes it: what earlier parts left is not its cost.
            gc.collect()
            spark._jvm.System.gc()
            at_rest(pid)
            seconds[part] = timed(write)
        say(f"{part}: {ours[part]:.1f} s, the bare connector {bare[part]:.1f} s")
    return ours, bare


def _finished_rows(
    spark: SparkSession, settings: Settings, protocol: str, days: list[served.DueDay], folder: Path
) -> Finished:
    """Keyspace, table and rows of the days, as they end in the store, in Parquet."""
    tables = dict(Pinned(spark, open_reader(settings).locations(NETWORK), [one.day for one in days]))
    tables["spent"] = tables["consumed_outputs"].where("kind = 'legacy'").select("output_id")
    placings = _placings(spark, tables, settings.cassandra.partition_size) if protocol == "chrysalis" else {}
    made = []
    for keyspace, table in placed(_BARE, protocol):
        if table is PLACES:
            continue
        if table in _PLACED:
            rows = placings[table.name]
        elif table in chrysalis.CHRYSALIS_TABLES:
            rows = getattr(chrysalis_rows, table.name)(tables)
        else:
            rows = STARDUST_ROWS[table.name](tables)
        file = str(folder / keyspace / table.name)
        rows.write.parquet(file)
        made.append((keyspace, table.name, spark.read.parquet(file)))
    return made


def _placings(spark: SparkSession, tables: dict[str, DataFrame], size: int) -> dict[str, DataFrame]:
    nothing = spark.createDataFrame([], PERMANODE_PARTITIONS.spark)
    found, hints = {}, []
    for variant, (table, _, order) in chrysalis_rows.LOOKUPS.items():
        rows = chrysalis_rows.lookups(tables)[variant]
        segments = new_segments(lacking(rows, nothing), ends_of(nothing), size)
        lying = with_partition(rows, segments, order)
        found[table.name] = chrysalis_rows.placed(variant, lying)
        hints.append(chrysalis_rows.hints(lying))
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
