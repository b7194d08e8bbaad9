"""Where carried tables continue: their rows at the end of the latest day before a range."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from permalake.wormhole.tables.attested_tokens import attested_tokens

Tables = Callable[[str], DataFrame]
_BEGINNING = date(1969, 12, 31)  # a VAA without a time is of 1970-01-01


def latest_before(carried: DataFrame, start: date) -> DataFrame:
    """Return the rows of the latest day before ``start``: one partition, however long the history is."""
    before = carried.where(F.col("date") < F.lit(start))
    latest = _latest(before)
    return before.where(F.col("date") == F.lit(latest)) if latest else before.limit(0)


def attested_until(table: Tables, end: date, sound_before: date) -> DataFrame:
    """Return the tokens attested by the end of each day from ``sound_before``, or before, to ``end``.

    Args:
        table: Gives a whole table: history as published, and the days that are being built.
        end: Last day of the range that is being built.
        sound_before: The carried ``attested_tokens`` of days before it can be trusted: the first day that
            waits to be carried, or the first one of the range.
    """
    state = latest_before(table("attested_tokens"), sound_before)
    since = _latest(state) or _BEGINNING
    inside = (F.col("date") > F.lit(since)) & (F.col("date") <= F.lit(end))
    metas, publications = table("asset_meta_payload"), table("message_publication")
    return attested_tokens(metas.where(inside), publications.where(inside), state)


def _latest(rows: DataFrame) -> date | None:
    found: date | None = rows.agg(F.max("date")).first()[0]  # type: ignore[index]
    return found
