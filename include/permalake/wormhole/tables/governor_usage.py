"""Priced transfers and the governor's limits → ``governor_usage_daily``."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from permalake.wormhole.tables.token_transfer_details import TOKEN


def governor_usage_daily(
    known: DataFrame, details: DataFrame, listed: DataFrame, limits: DataFrame
) -> DataFrame:
    """Return what each chain sent of the tokens that the guardians' governor counts, beside its limits.

    ``known`` has date, row_key, emitter_chain and the token of each transfer, ``details`` its notional_usd.
    ``listed``: tokens that count (origin_chain, origin_address); ``limits``: emitter_chain, since, until
    (null: still holds), daily_limit_usd and big_transaction_usd (null or 0: none is big). A transfer from
    the latter on waits for a day and does not use up the limit, see whitepaper 0007 of
    wormhole-foundation/wormhole. That transfers back free some of it (flow cancel) is not counted.
    """
    in_force = F.col("date").between(F.col("since"), F.coalesce(F.date_sub("until", 1), F.col("date")))
    counted = (
        known.select("date", "row_key", "emitter_chain", *TOKEN)
        .join(F.broadcast(listed), list(TOKEN), "left_semi")
        .join(details.select("date", "row_key", "notional_usd"), ["date", "row_key"])
        .join(F.broadcast(limits), "emitter_chain")
        .where(in_force & F.col("notional_usd").isNotNull())
    )
    big = F.col("big_transaction_usd")
    is_big = F.coalesce((big > 0) & (F.col("notional_usd") >= big), F.lit(False))
    return counted.groupBy("date", "emitter_chain", "daily_limit_usd", "big_transaction_usd").agg(
        F.count_if(~is_big).alias("transfers"),
        F.try_sum(F.when(is_big, 0).otherwise(F.col("notional_usd"))).alias("notional_usd"),
        F.count_if(is_big).alias("big_transfers"),
        F.try_sum(F.when(is_big, F.col("notional_usd")).otherwise(0)).alias("big_notional_usd"),
    )
