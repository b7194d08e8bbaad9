"""Our ``xxhash64`` is that of Spark."""

import random
from datetime import date, timedelta

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from permalake.arrays.spark_hash import spark_xxhash64

CHANCE = random.Random(1)
TEXTS = [
    None,
    *("x" * size for size in range(80)),
    *("größe" * size for size in range(20)),
    *("".join(CHANCE.choices("023456789acdefghjklmnpqrstuvwxyz", k=63)) for _ in range(300)),
]
EPOCH = date(1970, 1, 1)
ROWS = pa.table(
    {
        "text": pa.array(TEXTS),
        "number": pa.array([CHANCE.choice([None, 0, -1, CHANCE.getrandbits(63)]) for _ in TEXTS], pa.int64()),
        "day": pa.array(
            [CHANCE.choice([None, EPOCH + timedelta(CHANCE.randrange(-99, 30_000))]) for _ in TEXTS]
        ),
    }
)


def test_hashes_are_those_of_spark(spark) -> None:
    theirs = spark.createDataFrame(ROWS).select(F.xxhash64("text", "number", "day").alias("h")).toArrow()["h"]
    assert spark_xxhash64(*ROWS.columns).to_pylist() == theirs.to_pylist()


@pytest.mark.parametrize("part", [(3, 50), (90, 200), (0, 0)])
def test_hashes_of_a_part_are_those_of_the_whole(part) -> None:
    assert spark_xxhash64(*ROWS.slice(*part).columns) == spark_xxhash64(*ROWS.columns).slice(*part)


def test_hashes_are_as_published() -> None:
    """A lake's fingerprints go on from these, whatever version of Spark is installed."""
    row = (pa.array(["smr1qzzzzzzz"]), pa.array([100], pa.int64()), pa.array([date(2022, 9, 28)]))
    assert spark_xxhash64(*row).to_pylist() == [7721092565105457801]
