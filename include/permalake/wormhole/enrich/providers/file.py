"""Price provider ``file``: quotes from CSV (plain or gzip, one file or a folder of them)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from permalake.errors import ConfigError
from permalake.pipeline.line_files import files_below, refuse_damaged
from permalake.pipeline.line_tasks import csv_documents
from permalake.spark.frames import of_rows
from permalake.wormhole.contracts.value_reasons import NO_QUOTE, NOT_ASKED
from permalake.wormhole.enrich.price_providers import PriceProvider
from permalake.wormhole.enrich.price_service import PriceCache
from permalake.wormhole.enrich.provider_context import ProviderContext
from permalake.wormhole.enrich.quotes import invalid_quotes
from permalake.wormhole.reference import TokenId
from permalake.wormhole.tables.nearest_quotes import TOKEN
from permalake.wormhole.tables.used_quotes import is_price, stored_near

NAME = "file"
_COLUMNS = ("quoted_at", "chain", "token_address", "price_usd")
_KEY = (*TOKEN, "provider", "quote_time")
_QUOTES = (
    "origin_chain int, origin_address string, provider string, quote_time timestamp, "
    "price_usd decimal(38,18), confidence double"
)


def open_provider(context: ProviderContext) -> PriceProvider:
    """Open the quotes at ``prices.path``, or at the path of a fallback."""
    return FilePrices(context.source.path, context.window_hours, context.cache, context.asking.anew)


@dataclass(frozen=True)
class FilePrices:
    """Quotes in CSV files; without a path nothing has a price.

    The header holds at least ``quoted_at`` (RFC 3339), ``chain`` (Wormhole id), ``token_address`` (32 bytes,
    hex) and ``price_usd``.

    A quote that the lake has stored counts, whatever the file says of that moment now; with ``anew`` the file
    counts. Without a ``cache`` nothing is stored.
    """

    path: Path | None
    window_hours: float
    cache: PriceCache | None = None
    anew: bool = False

    def quotes(self, spark: SparkSession, wanted: DataFrame) -> DataFrame:
        """Return quotes of the wanted tokens that lie within reach of any wanted time."""
        if self.path is None:
            return of_rows(spark, [], _QUOTES)
        near = self._near(wanted, self._all(spark))
        if self.cache is None:
            return near.where("price_usd IS NOT NULL").drop("invalid")
        rows = near.join(self._stored(spark, wanted, self.cache), list(_KEY), "left").localCheckpoint()
        self._note(rows, self.cache)
        first, second = ("price_usd", "stored_usd") if self.anew else ("stored_usd", "price_usd")
        return (
            rows.withColumn("price_usd", F.coalesce(first, second))
            .select(*near.columns[:-1])
            .dropna(subset="price_usd")
        )

    def lack(self, token: TokenId) -> str:  # noqa: ARG002
        """Return why a token that was wanted has no quote here."""
        return NOT_ASKED if self.path is None else NO_QUOTE

    # -- Inside --------------------------------------------------------------------------------------

    def _all(self, spark: SparkSession) -> DataFrame:
        """Return a row per token and moment.

        ``price_usd`` is null without a valid price; ``invalid`` counts the others.
        """
        files = files_below(Path(str(self.path)), (".csv", ".csv.gz"))
        if not files:
            raise ConfigError(
                f"prices.path: {self.path} does not exist or holds no CSV file of quotes; point it at one"
            )
        refuse_damaged(files, "prices.path")
        table = csv_documents(spark, files, _COLUMNS, "prices.path")
        read = table.select(
            F.col("chain").try_cast("int").alias("origin_chain"),
            F.lower(F.trim("token_address")).alias("origin_address"),
            F.lit(NAME).alias("provider"),
            F.try_to_timestamp("quoted_at").alias("quote_time"),
            F.col("price_usd").try_cast("decimal(38,18)").alias("price_usd"),
        ).dropna(subset=list(_KEY))
        valid = F.coalesce(is_price(F.col("price_usd")), F.lit(False))
        # Two prices at one moment would leave the choice to the order of lines.
        return read.groupBy(*_KEY).agg(
            F.min(F.when(valid, F.col("price_usd"))).alias("price_usd"),
            F.lit(None).cast("double").alias("confidence"),
            F.count_if(~valid).alias("invalid"),
        )

    def _near(self, wanted: DataFrame, quotes: DataFrame) -> DataFrame:
        reach = F.make_dt_interval(hours=F.lit(0), secs=F.lit(self.window_hours * 3600))
        spans = wanted.groupBy(*TOKEN).agg(F.min("at").alias("first"), F.max("at").alias("last"))
        within = F.col("quote_time").between(F.col("first") - reach, F.col("last") + reach)
        return quotes.join(F.broadcast(spans), list(TOKEN)).where(within).select(*quotes.columns)

    def _stored(self, spark: SparkSession, wanted: DataFrame, cache: PriceCache) -> DataFrame:
        """Return the stored quotes of the file around the wanted times: the key and stored_usd."""
        return stored_near(cache.quotes(spark), wanted, NAME, self.window_hours).select(
            *_KEY, F.col("price_usd").alias("stored_usd")
        )

    def _note(self, rows: DataFrame, cache: PriceCache) -> None:
        differs = F.col("stored_usd") != F.col("price_usd")
        moment = F.date_format("quote_time", "yyyy-MM-dd'T'HH:mm:ss'Z'").alias("moment")
        example = F.struct("quote_time", moment, *TOKEN, "stored_usd", "price_usd")
        counts = rows.agg(
            F.sum("invalid").alias("invalid"),
            F.count_if(differs).alias("differing"),
            F.min(F.when(differs, example)).alias("example"),
        ).first()
        if counts is None:
            return
        if counts["invalid"]:
            cache.note(invalid_quotes(NAME, counts["invalid"]))
        if counts["differing"] and not self.anew:
            cache.note(
                f"prices: {NAME}: quotes that differ from the stored ones: {counts['differing']}; the stored "
                f"ones count, --force takes the file's: {_difference(counts['example'])}"
            )


def _difference(example: Row) -> str:
    return (
        f"token {example['origin_chain']}:{example['origin_address']} at "
        f"{example['moment']}: {example['stored_usd'].normalize():f} is stored, the file has "
        f"{example['price_usd'].normalize():f}"
    )
