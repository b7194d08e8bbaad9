"""The ``permalake`` source: days of Wormhole that a publisher has exported, landed in the warehouse.

VAAs are taken over as bytes, and judged again like those of any other source. Prices, chain answers and
counts of refused VAAs cannot be derived from them: their tables are taken over as the publisher signed them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from permalake.contracts.steps import MIRRORED
from permalake.net import object_storage
from permalake.spark.frames import of_rows
from permalake.transparency.landed import LandedDay, LandedDays
from permalake.wormhole.codec.vaa import GENESIS
from permalake.wormhole.contracts import WORMHOLE_TABLES

RAW = ("quorum_state", "message_publication", "observations")
DETAILS = ("token_transfer_details", "chain_details", "application_transfer_details")
"""Tables that hold prices and answers of chains."""
COUNTS = "messages_daily"
"""Counts refused VAAs, too."""
TVL = "tvl_daily"
LANDED = [WORMHOLE_TABLES[name] for name in (*RAW, *DETAILS, COUNTS, TVL)]
NOTE = "prices, answers of chains and counts of refused VAAs are the word of {}"


class PublishedVaas:
    """Exported days as the source of Wormhole; ``days`` are those that were landed."""

    def __init__(self, spark: SparkSession, days: Iterable[LandedDay]) -> None:
        self.spark = spark
        self._days = list(days)

    @property
    def documents(self) -> DataFrame:
        """The VAAs, in the columns of ``vaa_files.read``."""
        vaas, publications = self.taken("quorum_state"), self.taken("message_publication")
        rows = vaas.join(
            publications.select("date", "row_key", "initiating_tx_id"), ["date", "row_key"], "left"
        )
        real = F.when(F.col("date") >= F.lit(GENESIS), F.col("date").cast("timestamp"))
        return rows.select(
            F.lit(MIRRORED).alias("source"),
            F.concat_ws(" ", F.lit(self._origins), "row_key").alias("origin"),
            F.lit(None).cast("string").alias("claimed_id"),
            F.col("signed_vaa").alias("raw"),
            F.lit(None).cast("string").alias("fault"),
            real.alias("document_time"),
            F.lit(None).cast("timestamp").alias("indexed_at"),
            F.col("initiating_tx_id").alias("tx_id"),
        )

    @property
    def observations(self) -> DataFrame | None:
        """The observations, in the columns of ``observation_files.read``; None where the days have none."""
        if not any(day.file("observations") for day in self._days):
            return None
        return self.taken("observations").select(
            "row_key",
            F.col("guardian_address").alias("guardian"),
            F.unhex("signature").alias("signature"),
            "observed_at",
            F.lit(MIRRORED).alias("source"),
            F.concat_ws(" ", F.lit(self._origins), "row_key", "guardian_address").alias("origin"),
            F.col("signature").cast("binary").alias("raw"),
        )

    def taken(self, table: str) -> DataFrame:
        """Return the rows of a table as they were signed."""
        schema = WORMHOLE_TABLES[table].spark
        files = [file for day in self._days if (file := day.file(table))]
        if not files:
            return of_rows(self.spark, [], schema)
        return self.spark.read.schema(schema).parquet(*files)

    @property
    def _origins(self) -> str:
        return ", ".join(sorted({day.origin for day in self._days}))


def signed_rows(days: Iterable[LandedDay], table: str) -> ds.Dataset:
    """Return the rows of a table as they were signed."""
    files = [file for day in days if (file := day.file(table))]
    return object_storage.parquet_files(files, WORMHOLE_TABLES[table].arrow)


def landed_between(landed: LandedDays, start: date, end: date) -> list[LandedDay]:
    """Return the landed days of start..end."""
    days = (landed.day(date.fromordinal(at)) for at in range(start.toordinal(), end.toordinal() + 1))
    return [day for day in days if day is not None]
