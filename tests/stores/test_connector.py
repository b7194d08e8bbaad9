"""A write that fails ends the others of its program, which would wait for a session that is closed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from permalake.config.stores import CassandraSettings
from permalake.contracts.cql import StoreTable, create_keyspace
from permalake.stores import cassandra

KEYSPACE = "ended"
TABLE, MISSING = (StoreTable(name, "Ids.", {"id": "text"}, ("id",), ()) for name in ("ids", "missing"))
HANGS = 600


def hang(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a task does whose session was closed while an answer was on its way."""
    for batch in batches:
        time.sleep(HANGS)
        yield batch


def test_a_write_that_fails_ends_one_that_hangs(spark, cassandra_server) -> None:
    settings = CassandraSettings(contact_points=("127.0.0.1",), port=cassandra_server.port)
    statements = [create_keyspace(KEYSPACE, settings.local_dc, 1), *TABLE.ddl(KEYSPACE)]
    cassandra.ensure(settings, statements, [(KEYSPACE, TABLE)])
    frame = spark.createDataFrame([("a",)], TABLE.spark).coalesce(1)
    jobs = spark.sparkContext.statusTracker()
    began = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        hanging = pool.submit(
            cassandra.write, frame.mapInArrow(hang, frame.schema), settings, KEYSPACE, TABLE, 1
        )
        while not jobs.getActiveJobsIds():
            assert not hanging.done(), hanging.result()
            time.sleep(0.05)
        with pytest.raises(Exception, match="NoSuchTable"):
            cassandra.write(frame, settings, KEYSPACE, MISSING, 1)
        with pytest.raises(Exception, match="cancelled"):
            hanging.result()
    assert time.monotonic() - began < HANGS
    cassandra.write(frame, settings, KEYSPACE, TABLE, 2)
