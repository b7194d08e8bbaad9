"""The state from which carried tables continue: their rows at the end of the latest day before a range."""

from __future__ import annotations

from datetime import date

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

BEGINNING = date(1969, 12, 31)
"""The day before all days: a VAA without a time is of 1970-01-01."""


def latest_before(carried: DataFrame, start: date) -> DataFrame:
    """Return the rows of the latest day before ``start``: one partition, however long the history is."""
    before = carried.where(F.col("date") < F.lit(start))
    latest: date | None = before.agg(F.max("date")).first()[0]  # type: ignore[index]
    return before.where(F.col("date") == F.lit(latest)) if latest else before.limit(0)
