"""Bigtable: events with their cells' own timestamps, beside the bare Spark connector with the same rows.

``python -m bench.bigtable [MESSAGES]``: synthetic VAAs, kept in ``bench/.data``, into a real emulator of this
benchmark's own. Ours joins the lake's tables into rows and replaces each row whole, every cell with the time
of its VAA; the bare connector (spark-bigtable) writes the finished columns from Parquet, all with one time.
In turn, each time into a new emulator, which keeps all in memory; medians after two turns to warm up.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.machine import say, timed
from bench.store_lake import WORMHOLE, lake, spark
from permalake.config import Settings
from permalake.config.stores import BigtableSettings
from permalake.domains import open_reader
from permalake.lake.database import Database
from permalake.lake.day_rows import DayRows
from permalake.local.services import control
from permalake.local.services.daemon import free_port
from permalake.spark.tasks import TaskShare
from permalake.stores import served
from permalake.stores.batch import StoreBatch
from permalake.wormhole.events.event_cells import EVENTS, QUERIES
from permalake.wormhole.events.events_writer import BigtableDays
from permalake.wormhole.events.families import FAMILIES
from permalake.wormhole.events.store import ensure_tables

MESSAGES = 100_000
WARMING, TURNS = 2, 5
# The peer, and the binding of slf4j 1 that it asks for and Spark 4 does not bring.
_PEER = ("com.google.cloud.spark.bigtable:spark-bigtable_2.13:0.4.0", "org.slf4j:slf4j-nop:1.7.36")


def run(messages: int = MESSAGES) -> list[dict]:
    """Rows per second into table v2, ours and the bare connector's, and ours into table v1."""
    session = spark(*_PEER)
    built = lake(session, WORMHOLE, messages)
    state = open_reader(built).locations(WORMHOLE)
    with Database(built.lake.catalog_uri).write() as connection:
        served.forget(connection, WORMHOLE, "bigtable")
        due = served.due(connection, WORMHOLE, "bigtable")
    batch = StoreBatch(WORMHOLE, [served.DueDay(one.day, one.publication_id, ()) for one in due], state, 0)
    with tempfile.TemporaryDirectory(prefix="bench-bigtable-") as folder:
        _finished(batch, f"{folder}/v2.parquet")
        finished = session.read.parquet(f"{folder}/v2.parquet")
        writers: dict[str, Callable[[BigtableSettings], object]] = {
            "bare": lambda settings: _bare(finished, settings),
            "ours": lambda settings: _days(session, built, settings, "v2").write(batch),
            "v1": lambda settings: _days(session, built, settings, "v1").write(batch),
        }
        seconds: dict[str, list[float]] = {name: [] for name in writers}
        for turn in range(WARMING + TURNS):
            for name, writer in writers.items():
                with emulator() as settings:
                    ensure_tables(settings)
                    taken = timed(lambda: writer(settings))  # noqa: B023
                if turn >= WARMING:
                    seconds[name].append(taken)
        rows = finished.count()
        counted = finished.agg(*(F.count(name) for name in _columns())).first()
    ours, bare, v1 = (statistics.median(seconds[name]) for name in ("ours", "bare", "v1"))
    return [
        {
            "name": f"{rows:,} events into Bigtable, table v2",
            "unit": "rows/s",
            "ours": round(rows / ours),
            "peer": round(rows / bare),
            "peer_name": "the bare connector with finished rows, one timestamp",
            "ratio": round(bare / ours, 3),
            "cells": sum(counted or ()),
            "seconds": round(ours, 1),
            "peer_seconds": round(bare, 1),
            "all_seconds": {name: [round(each, 1) for each in all_] for name, all_ in seconds.items()},
            "v1_rows_per_second": round(rows / v1),
        }
    ]


def _days(spark: SparkSession, built: Settings, store: BigtableSettings, version: str) -> BigtableDays:
    """The writer of one table alone."""
    other = {"v2": "table_v1", "v1": "table"}[version]
    settings = built.model_copy(update={"bigtable": store.model_copy(update={other: None})})
    return BigtableDays(spark, settings, WORMHOLE)


def _finished(batch: StoreBatch, file: str) -> None:
    """One column per cell, ``FAMILY_QUALIFIER``, in Parquet; the cells as the store has them."""
    first, last = min(batch.dates), max(batch.dates)
    schema = pa.schema([("row_key", pa.string()), *((name, pa.binary()) for name in _columns())])
    queries = QUERIES.over(lambda name: DayRows(batch.state[name], first, last).scan())
    with queries.engine(TaskShare("1g", 2)) as engine, pq.ParquetWriter(file, schema) as writer:
        for rows in engine.batches(QUERIES.tables[EVENTS]):
            writer.write_batch(rows.select(schema.names).cast(schema))


def _columns() -> dict[str, tuple[str, str]]:
    return {
        f"{family.name}_{qualifier}": (family.name, qualifier)
        for family in FAMILIES
        for qualifier in family.cells
    }


def _bare(rows: DataFrame, settings: BigtableSettings) -> None:
    catalog = {
        "table": {"name": settings.table},
        "rowkey": "key",
        "columns": {
            "row_key": {"cf": "rowkey", "col": "key", "type": "string"},
            **{
                name: {"cf": family, "col": qualifier, "type": "binary"}
                for name, (family, qualifier) in _columns().items()
            },
        },
    }
    (
        rows.write.format("bigtable")
        .option("catalog", json.dumps(catalog))
        .option("spark.bigtable.project.id", str(settings.project))
        .option("spark.bigtable.instance.id", str(settings.instance))
        .option("spark.bigtable.emulator.port", os.environ["BIGTABLE_EMULATOR_HOST"].rpartition(":")[2])
        .option("spark.bigtable.create.new.table", "false")
        .save()
    )


@contextmanager
def emulator() -> Iterator[BigtableSettings]:
    """A real, empty emulator on a free port; stopped at the end."""
    with tempfile.TemporaryDirectory(prefix="bench-bigtable-server-") as folder:
        server = control.servers(free_port(), free_port(), Path(folder))["bigtable"]
        control.up({"bigtable": server}, say, Path(folder))
        os.environ["BIGTABLE_EMULATOR_HOST"] = f"127.0.0.1:{server.port}"
        try:
            yield BigtableSettings(project="bench", instance="bench", table="v2", table_v1="v1")
        finally:
            server.daemon.stop()


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]) if len(sys.argv) > 1 else MESSAGES), indent=1))
