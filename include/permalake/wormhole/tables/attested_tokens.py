"""Attestations → ``attested_tokens``: the metadata of each token at each day's end.

Every day with messages carries every token attested so far, so that the latest day before a range is the
whole running state, and the cost of a day does not grow with history. Only the bridge of a token's own chain
may attest it.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

TOKEN = ("origin_chain", "origin_address")
RECORD = ("decimals", "symbol", "name")


def attested_tokens(metas: DataFrame, publications: DataFrame, state: DataFrame) -> DataFrame:
    """Return the rows of ``attested_tokens`` for the days of the ``publications``.

    ``metas`` and ``publications`` are the range's rows of ``asset_meta_payload`` and ``message_publication``,
    ``state`` the ``attested_tokens`` rows of the latest day before the range. Of several attestations of a
    day the one with the latest timestamp counts, of equals the one with the highest key.
    """
    times = publications.select("date", "row_key", "timestamp")
    own = metas.where(F.substring_index("row_key", ":", 1).cast("int") == F.col("token_chain"))
    latest = (
        own.join(times, ["date", "row_key"])
        .groupBy("date", F.col("token_chain").alias(TOKEN[0]), F.col("token_address").alias(TOKEN[1]))
        .agg(F.max_by(F.struct(*RECORD, "row_key"), F.struct("timestamp", "row_key")).alias("new"))
    )
    held = state.select(*TOKEN, F.struct(*RECORD, "attested_on", "row_key").alias("held"))
    tokens = latest.select(*TOKEN).union(held.select(*TOKEN)).distinct()
    grid = publications.select("date").distinct().crossJoin(tokens)
    told = F.struct(*_fields("new", *RECORD), F.col("date").alias("attested_on"), F.col("new.row_key"))
    so_far = Window.partitionBy(*TOKEN).orderBy("date")
    carried = (
        grid.join(latest, ["date", *TOKEN], "left")
        .join(held, [*TOKEN], "left")
        .select(
            "date",
            *TOKEN,
            F.coalesce(
                F.last(F.when(F.col("new").isNotNull(), told), ignorenulls=True).over(so_far), F.col("held")
            ).alias("known"),
        )
    )
    return carried.where(F.col("known").isNotNull()).select(
        "date", *TOKEN, *_fields("known", *RECORD, "attested_on", "row_key")
    )


def _fields(struct: str, *names: str) -> list[Column]:
    return [F.col(f"{struct}.{name}").alias(name) for name in names]
