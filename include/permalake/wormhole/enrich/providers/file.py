"""Price provider ``file``: quotes from CSV (plain or gzip, one file or a folder of them)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from permalake.errors import ConfigError
from permalake.pipeline.line_files import files_below, refuse_damaged, spark_paths
from permalake.spark.frames import of_rows
from permalake.wormhole.enrich.price_providers import PriceProvider
from permalake.wormhole.enrich.provider_context import ProviderContext

NAME = "file"
_COLUMNS = ("quoted_at", "chain", "token_address", "price_usd")
_QUOTES = (
    "origin_chain int, origin_address string, provider string, quote_time timestamp, price_usd decimal(38,18)"
)


def open_provider(context: ProviderContext) -> PriceProvider:
    """Open the quotes at ``prices.path``, or at the path of a fallback."""
    return FilePrices(context.source.path, context.window_hours)


@dataclass(frozen=True)
class FilePrices:
    """Quotes in CSV files; without a path nothing has a price.

    The header holds at least ``quoted_at`` (RFC 3339), ``chain`` (Wormhole id), ``token_address`` (32 bytes,
    hex) and ``price_usd``.
    """

    path: Path | None
    window_hours: float

    def quotes(self, spark: SparkSession, wanted: DataFrame) -> DataFrame:
        """Return quotes of the wanted tokens that lie within reach of any wanted time."""
        if self.path is None:
            return of_rows(spark, [], _QUOTES)
        quotes = self._all(spark)
        reach = F.make_dt_interval(hours=F.lit(0), secs=F.lit(self.window_hours * 3600))
        asked = wanted.groupBy("origin_chain", "origin_address").agg(
            F.min("at").alias("first"), F.max("at").alias("last")
        )
        within = F.col("quote_time").between(F.col("first") - reach, F.col("last") + reach)
        joined = quotes.join(F.broadcast(asked), ["origin_chain", "origin_address"]).where(within)
        return joined.select(*quotes.columns)

    def _all(self, spark: SparkSession) -> DataFrame:
        files = files_below(Path(str(self.path)), (".csv", ".csv.gz"))
        if not files:
            raise ConfigError(
                f"prices.path: {self.path} does not exist or holds no CSV file of quotes; point it at one"
            )
        refuse_damaged(files, "prices.path")
        table = spark.read.option("header", "true").csv(spark_paths(files))
        if lacking := [name for name in _COLUMNS if name not in table.columns]:
            raise ConfigError(f"prices.path: {self.path} lacks the column {lacking[0]}")
        read = table.select(
            F.col("chain").try_cast("int").alias("origin_chain"),
            F.lower(F.trim("token_address")).alias("origin_address"),
            F.lit(NAME).alias("provider"),
            F.try_to_timestamp("quoted_at").alias("quote_time"),
            F.col("price_usd").try_cast("decimal(38,18)").alias("price_usd"),
        ).dropna()
        # Two prices at one moment would leave the choice to the order of lines.
        return read.groupBy("origin_chain", "origin_address", "provider", "quote_time").agg(
            F.min("price_usd").alias("price_usd")
        )
