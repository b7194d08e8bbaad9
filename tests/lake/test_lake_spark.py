"""Spark's side of the lake: staging, quarantine, caches, and three engines that read the same."""

from __future__ import annotations

import shutil
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import functions as f

from permalake.contracts import QUARANTINE
from permalake.domains import domain_of
from permalake.errors import PermalakeError
from permalake.lake.catalog import open_catalog, open_table
from permalake.lake.counts import day_of, files
from permalake.lake.relocate import relocate
from permalake.pipeline import quarantining
from permalake.pipeline.side_rows import Replacement, add_or_replace, append_new
from support.lakes import DAY1, DAY2, DAY3, NETWORK, OpenLake, analytics, build, pass_audit, settings_of
from support.landed import land

TABLES = domain_of(NETWORK).tables
MS_ANALYTICS = TABLES["ms_analytics"]


def frame(spark, table, rows):
    return spark.createDataFrame([tuple(row[name] for name in table.names) for row in rows], table.spark)


def quarantine(attempt, spark, *rows):
    """Replace the quarantine of the attempt's days by (origin, day, detail[, raw])."""
    names = ("source", "origin", "reason", "detail", "raw", "date")
    schema = pa.schema([QUARANTINE.arrow.field(name).with_nullable(True) for name in names])
    refused = [
        ("files", origin, "malformed", detail, *(raw or [None]), day) for origin, day, detail, *raw in rows
    ]
    landed = land(
        attempt.landing,
        {"refused": pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in refused], schema)},
    )
    return quarantining.quarantine(attempt, "SELECT * FROM refused", landed, lambda: spark)


def published(lake, day, rows, spark, run_id):
    attempt = lake.begin(NETWORK, day, day, run_id)
    attempt.stage(frame(spark, MS_ANALYTICS, rows), MS_ANALYTICS)
    return lake.builds.publish(pass_audit(attempt))


def tokens(lake):
    rows = lake.query("select date, sum(message_count) n from shimmer.ms_analytics group by 1 order by 1")
    return {row["date"]: int(row["n"]) for row in rows.to_pylist()}


@pytest.mark.parametrize(("adaptive", "partitions"), [("false", "1"), ("false", "2"), ("true", "2")])
def test_a_frame_is_cast_ordered_and_sorted_into_one_file_per_day(spark, lake, adaptive, partitions) -> None:
    spark = spark.newSession()
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    attempt = lake.begin(NETWORK, DAY1, DAY2, "run")
    shuffled = spark.range(400).select(
        f.expr("date_add(date'2022-09-28', cast(id % 2 as int))").alias("date"),
        f.expr("(id * 37) % 400").alias("milestone_index"),
        f.lit("7").alias("message_count"),
        f.lit(1).cast("smallint").alias("transaction_count"),
        f.lit(5).cast("decimal(20,0)").alias("transferred_tokens"),
        f.lit(0).alias("ms_range_id"),
        f.lit("left out").alias("other"),
    )
    attempt.stage(shuffled.repartition(7), MS_ANALYTICS)
    assert attempt.staged.counts()["ms_analytics"] == {DAY1: 200, DAY2: 200}
    assert attempt.days(spark, "ms_analytics").count() == 400
    lake.builds.publish(pass_audit(attempt))
    written = list(files(open_table(lake.reader.locations(NETWORK)["ms_analytics"])))
    assert sorted(day_of(file) for file in written) == [DAY1, DAY2]
    rows = lake.query("select milestone_index from shimmer.ms_analytics where date = date '2022-09-28'")
    indexes = rows["milestone_index"].to_pylist()
    assert indexes == sorted(indexes)


def test_an_empty_frame_deletes_and_36_scattered_days_are_one_range(spark, lake) -> None:
    start, end = date(1970, 1, 1), date(2026, 7, 30)
    days = [start, *(date(2021, 9, 1) + timedelta(days=50 * number) for number in range(35))]
    rows = [row for number, day in enumerate(days) for row in analytics(day, number, 1)]
    attempt = lake.begin(NETWORK, start, end, "range")
    attempt.stage(frame(spark, MS_ANALYTICS, rows), MS_ANALYTICS)
    pinned = pass_audit(attempt)
    assert pinned.days_with_rows() == sorted(days)
    assert lake.builds.publish(pinned).days == tuple(sorted(days))
    assert len(lake.reader.status()) == 36
    for day, others in ((start, 35), (days[5], 34)):
        published(lake, day, [], spark, f"empty {day}")
        assert len(tokens(lake)) == others
    published(lake, days[5], [], spark, "empty again")
    assert len(tokens(lake)) == 34


def test_what_does_not_fit_the_contract_is_refused_and_leaves_no_trace(spark, lake) -> None:
    attempt = lake.begin(NETWORK, DAY1, DAY1, "run")
    good = frame(spark, MS_ANALYTICS, analytics(DAY1, 1, 5))
    attempt.stage(good, MS_ANALYTICS)
    with pytest.raises(PermalakeError, match="ms_analytics: the frame lacks column message_count, date"):
        attempt.stage(good.drop("message_count", "date"), MS_ANALYTICS)
    stray = frame(spark, MS_ANALYTICS, analytics(DAY1, 1, 6) + analytics(DAY3, 3, 6))
    with pytest.raises(PermalakeError, match="ms_analytics: rows of 2022-09-30 do not belong to 2022-09-28"):
        attempt.stage(stray, MS_ANALYTICS)
    assert attempt.staged.counts()["ms_analytics"] == {DAY1: 1}
    with pytest.raises(PermalakeError, match=r"use Attempt\.quarantine"):
        attempt.stage(good, QUARANTINE)
    attempt.stage(good, MS_ANALYTICS)
    assert [row.message_count for row in attempt.table(spark, "ms_analytics").collect()] == [5]


def test_spark_and_pyiceberg_and_duckdb_read_the_same(settings, spark, lake) -> None:
    build(settings, lake, DAY2, 2, 7, "by PyIceberg")
    first = lake.begin(NETWORK, DAY1, DAY1, "one")
    first.stage(frame(spark, MS_ANALYTICS, analytics(DAY1, 1, 5)), MS_ANALYTICS)
    published(lake, DAY3, analytics(DAY3, 3, 2**31 - 1), spark, "two")
    assert lake.builds.publish(pass_audit(first)).replayed
    by_duckdb = lake.query("select * from shimmer.ms_analytics order by milestone_index").to_pylist()
    by_spark = [
        row.asDict()
        for row in lake.reader.table(spark.newSession(), NETWORK, "ms_analytics")
        .orderBy("milestone_index")
        .collect()
    ]
    table = open_catalog(settings, "permalake").load_table((NETWORK, "ms_analytics"))
    by_pyiceberg = table.scan().to_arrow().sort_by("milestone_index").to_pylist()
    assert by_duckdb == by_spark == by_pyiceberg
    assert [row["message_count"] for row in by_duckdb] == [5, 7, 2**31 - 1]


def test_quarantine_rows_show_at_once_and_keep_when_they_were_first_seen(spark, lake) -> None:
    attempt = lake.begin(NETWORK, DAY1, DAY1, "one")
    a, b, elsewhere = ("a", DAY1, None, b"x" * 100_000), ("b", DAY1, None), ("elsewhere", DAY2, None)
    assert quarantine(attempt, spark, a, b, a, elsewhere) == 2
    seen = {row["origin"]: row["seen_at"] for row in lake.reader.rejected(NETWORK).to_pylist()}
    assert seen.keys() == {"a", "b"}
    whole = f"100000 bytes, SHA-256 {sha256(a[3]).hexdigest()}, of which the first 65536 are kept"
    kept = lake.reader.rejected(NETWORK, origin="a").to_pylist()
    assert [(row["raw"], row["detail"]) for row in kept] == [(a[3][:65_536], whole)]
    before = lake.reader.locations(NETWORK)["quarantine"]
    assert quarantine(attempt, spark, b, a) == 2
    assert lake.reader.locations(NETWORK)["quarantine"] == before

    again = lake.begin(NETWORK, DAY1, DAY1, "one")
    assert quarantine(again, spark, ("b", DAY1, "more"), ("c", DAY1, "more")) == 2
    rows = {row["origin"]: row for row in lake.reader.rejected(NETWORK, DAY1).to_pylist()}
    assert rows.keys() == {"b", "c"}
    assert rows["b"]["seen_at"] == seen["b"] < rows["c"]["seen_at"]
    assert rows["b"]["detail"] == "more"
    assert [(day.date, day.quarantined) for day in lake.reader.status()] == [(DAY1, 2)]

    pass_audit(again)
    assert again.staged.changed() == {}
    assert quarantine(again, spark) == 0
    assert lake.reader.rejected().num_rows == 0
    assert lake.reader.status()[0].quarantined == 0


def test_quarantine_of_days_built_at_once_is_all_there(spark, lake) -> None:
    one = lake.begin(NETWORK, DAY1, DAY1, "one")
    two = lake.begin(NETWORK, DAY2, DAY2, "two")
    quarantine(one, spark, ("a", DAY1, None))
    quarantine(two, spark, ("b", DAY2, None))
    one.record.refuse(DAY1, "broken cone")
    assert lake.reader.rejected()["origin"].to_pylist() == ["a", "b"]
    assert lake.reader.days_with_rejected(NETWORK) == [DAY1, DAY2]
    published(lake, DAY3, analytics(DAY3, 3, 1), spark, "three")
    assert lake.reader.rejected()["origin"].to_pylist() == ["a", "b"]


def test_a_cache_only_grows_and_keeps_its_clock(spark, lake) -> None:
    prices = domain_of("wormhole").tables["token_prices"]

    def quotes(hour, *days, price=None):
        fetched = datetime(2024, 7, 1, hour, tzinfo=UTC)
        return pa.Table.from_pylist(
            [
                {
                    "origin_chain": 2,
                    "origin_address": "ab" * 32,
                    "provider": "file",
                    "quote_time": datetime.combine(day, datetime.min.time(), UTC),
                    "price_usd": Decimal(price or hour),
                    "fetched_at": fetched,
                    "date": day,
                }
                for day in days
            ],
            prices.arrow,
        )

    one = lake.begin("wormhole", DAY2, DAY2, "one")
    assert append_new(one, quotes(1, DAY1, DAY2), prices, spark) == 2
    two = lake.begin("wormhole", DAY3, DAY3, "two")
    assert append_new(two, quotes(2, DAY2, DAY3), prices, spark) == 1
    assert append_new(one, quotes(3, DAY1), prices, spark) == 0
    # What breaks the contract would fail every audit of its day.
    assert append_new(one, quotes(4, DAY1 - timedelta(1), price=-1), prices, spark) == 0
    rows = lake.query(
        "select date, price_usd, hour(fetched_at) h from wormhole.token_prices order by 1"
    ).to_pylist()
    assert [(row["date"], int(row["price_usd"]), row["h"]) for row in rows] == [
        (DAY1, 1, 1), (DAY2, 1, 1), (DAY3, 2, 2),
    ]  # fmt: skip
    assert one.pin().days_with_rows() == []
    assert one.staged.changed() == {}
    assert one.table(spark, "token_prices").count() == 3
    # A correction replaces the row of its key, and no other of its day.
    other = quotes(5, DAY1).set_column(1, "origin_address", pa.array(["cd" * 32]))
    assert append_new(two, other, prices, spark) == 1
    corrected = quotes(6, DAY1, DAY3 + timedelta(1))
    assert add_or_replace(one, corrected, prices, spark, Replacement()) == (1, {DAY1})
    rows = lake.query("select date, price_usd from wormhole.token_prices order by all").to_pylist()
    assert [(row["date"], int(row["price_usd"])) for row in rows] == [
        (DAY1, 5), (DAY1, 6), (DAY2, 1), (DAY3, 2), (DAY3 + timedelta(1), 6),
    ]  # fmt: skip


def test_spark_reads_and_writes_a_lake_that_was_relocated(settings, spark, lake, tmp_path) -> None:
    """Its manifests were written by PyIceberg and by Spark, and rewritten by PyIceberg."""
    spark = spark.newSession()  # which opens the catalog anew
    published(lake, DAY1, analytics(DAY1, 1, 5), spark, "a")
    build(settings, lake, DAY2, 2, 7, "b")
    lake.leave()
    shutil.move(settings.lake.warehouse, tmp_path / "moved")
    moved = settings_of(tmp_path / "moved")
    (done,) = relocate(moved, as_copy=False)
    assert done.problems == {}
    there = OpenLake(moved)
    rows = there.reader.table(spark, NETWORK, "ms_analytics").orderBy("date").collect()
    assert [row.message_count for row in rows] == [5, 7]
    published(there, DAY1, analytics(DAY1, 1, 6), spark, "c")
    assert tokens(there) == {DAY1: 6, DAY2: 7}
    assert not Path(settings.lake.warehouse).exists()
