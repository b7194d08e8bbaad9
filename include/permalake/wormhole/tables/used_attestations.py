"""Transfers whose amount, symbol or name rests on an attestation that has changed since."""

from __future__ import annotations

from datetime import date

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from permalake.wormhole.tables.exact_amounts import scaled

TOKEN = ("origin_chain", "origin_address")


def outdated_days(
    transfers: DataFrame, details: DataFrame, attested: DataFrame, attested_then: DataFrame
) -> dict[date, str]:
    """Return the days with a transfer that would have another amount, symbol or name now, with the reason.

    ``transfers`` and ``details`` are rows of ``token_transfer_payload`` and ``token_transfer_details``,
    ``attested`` those of ``attested_tokens`` of the same days, ``attested_then`` the same as carried before:
    what a token that is attested no longer was told by cannot be seen in its transfers.
    """
    values = details.select("date", "row_key", "amount", "origin_symbol", "origin_name")
    raw = transfers.select("date", "row_key", *TOKEN, F.col("amount").alias("raw"))
    told = attested.select("date", *TOKEN, "decimals", "symbol", "name")
    other = raw.join(values, ["date", "row_key"]).join(told, ["date", *TOKEN])
    changed = other.where(
        ~(
            F.col("origin_symbol").eqNullSafe(F.col("symbol"))
            & F.col("origin_name").eqNullSafe(F.col("name"))
            & F.col("amount").eqNullSafe(scaled(F.col("raw"), F.col("decimals")))
        )
    ).select("date", *TOKEN)
    lost = attested_then.select("date", *TOKEN).join(told, ["date", *TOKEN], "left_anti")
    gone = raw.join(lost, ["date", *TOKEN], "left_semi").select("date", *TOKEN)
    token = F.concat_ws(":", *TOKEN)
    found = changed.union(gone).groupBy("date").agg(F.min(token).alias("token")).collect()  # a row a day
    return {row["date"]: f"the attestation of token {row['token']} has changed" for row in found}
