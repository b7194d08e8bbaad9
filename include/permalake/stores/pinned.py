"""The lake as one read of the catalog found it, by days or whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Pinned(Mapping[str, "DataFrame"]):
    """Tables by name, of all days or of ``days`` only, in the state that ``locations`` name."""

    def __init__(
        self, spark: SparkSession, locations: Mapping[str, str], days: Iterable[date] | None = None
    ) -> None:
        self._spark = spark
        self._locations = dict(locations)
        self._days = None if days is None else sorted(days)

    def __getitem__(self, name: str) -> DataFrame:
        from pyspark.sql import functions as F

        table = self._spark.read.format("iceberg").load(self._locations[name])
        return table if self._days is None else table.where(F.col("date").isin(self._days))

    def __iter__(self) -> Iterator[str]:
        return iter(self._locations)

    def __len__(self) -> int:
        return len(self._locations)
