"""Placement of look-up rows: earliest partition first, the same place again, holes and growth."""

from __future__ import annotations

import datetime as dt
from collections import Counter

import pytest
from pyspark.sql import functions as F

from permalake.iota.permanode.partitions import ends_of, lacking, new_segments, with_partition
from permalake.iota.permanode.placement import PERMANODE_PARTITIONS

DAYS = [dt.date(2021, 5, day) for day in (10, 11, 12)]
SCHEMA = "variant string, hint string, date date, milestone_index int, message_id string"


class Ledger:
    """Places days one publish after another and remembers the segments, as the lake does."""

    def __init__(self, spark, size):
        self.spark, self.size, self.rows = spark, size, []

    def publish(self, counts, first=0):
        """``counts``: (hint, day number) -> rows. Returns message id -> partition."""
        lookups = self.spark.createDataFrame(
            [
                ("index", hint, DAYS[day], 100 * day + number, f"{hint}{day}{number:03d}")
                for (hint, day), count in counts.items()
                for number in range(first, first + count)
            ],
            SCHEMA,
        ).coalesce(1)
        known = self.spark.createDataFrame(self.rows, PERMANODE_PARTITIONS.spark)
        added = new_segments(lacking(lookups, known), ends_of(known), self.size)
        segments = known.select(*added.columns).unionByName(added)
        placed = with_partition(lookups, segments, ("milestone_index", "message_id"))
        found = {row.message_id: row.partition_id for row in placed.collect()}
        types = {field.name: field.dataType for field in PERMANODE_PARTITIONS.spark}
        self.rows += [
            tuple(row)
            for row in added.select(*(F.col(n).cast(types[n]) for n in PERMANODE_PARTITIONS.names)).collect()
        ]
        assert len(found) == sum(counts.values())
        return found


@pytest.fixture
def ledger(spark):
    return Ledger(spark, 4)


def test_earliest_partition_is_filled_first_in_publish_order(ledger) -> None:
    later = ledger.publish({("a", 1): 6, ("b", 1): 1})
    assert [later[f"a1{number:03d}"] for number in range(6)] == [0, 0, 0, 0, 1, 1]
    assert later["b1000"] == 0
    # An earlier day that is published later goes on where the first one stopped.
    earlier = ledger.publish({("a", 0): 3})
    assert [earlier[f"a0{number:03d}"] for number in range(3)] == [1, 1, 2]


def test_days_of_one_publish_go_in_order_of_their_date(ledger) -> None:
    placed = ledger.publish({("a", 2): 3, ("a", 0): 3, ("a", 1): 3})
    assert [placed[f"a{day}{number:03d}"] for day in range(3) for number in range(3)] == [
        0,
        0,
        0,
        0,
        1,
        1,
        1,
        1,
        2,
    ]


def test_a_republish_lands_where_it_was(ledger) -> None:
    first = ledger.publish({("a", 0): 7, ("b", 0): 2})
    ledger.publish({("a", 1): 5})
    segments = list(ledger.rows)
    assert ledger.publish({("a", 0): 7, ("b", 0): 2}) == first
    assert ledger.rows == segments


def test_a_day_rebuilt_with_more_rows_grows_at_the_end_and_never_overfills(ledger) -> None:
    first = ledger.publish({("a", 0): 3})
    second = ledger.publish({("a", 1): 3})
    grown = ledger.publish({("a", 0): 6})
    assert {message: grown[message] for message in first} == first
    assert [grown[f"a0{number:03d}"] for number in (3, 4, 5)] == [1, 1, 2]
    assert max(Counter([*grown.values(), *second.values()]).values()) <= 4


def test_a_day_rebuilt_with_fewer_rows_leaves_a_hole(ledger) -> None:
    ledger.publish({("a", 0): 5})
    segments = list(ledger.rows)
    assert set(ledger.publish({("a", 0): 2}).values()) == {0}
    assert ledger.rows == segments
    assert set(ledger.publish({("a", 1): 3}).values()) == {1}


def test_another_partition_size_goes_on_without_overfilling(spark) -> None:
    ledger = Ledger(spark, 4)
    ledger.publish({("a", 0): 6})
    ledger.size = 2
    assert [*ledger.publish({("a", 1): 3}).values()] == [2, 2, 3]
    ledger.size = 10
    assert set(ledger.publish({("a", 2): 9}).values()) == {3}
