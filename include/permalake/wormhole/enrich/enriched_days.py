"""The enriched and analytical tables of a range of days, from its published events."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from permalake.config import Settings
from permalake.wormhole.enrich import price_providers
from permalake.wormhole.enrich.chains import Chains
from permalake.wormhole.enrich.price_providers import PriceProvider
from permalake.wormhole.enrich.stand_ins import stand_ins
from permalake.wormhole.reference import load_reference
from permalake.wormhole.tables import application_details as applications
from permalake.wormhole.tables import token_transfer_details as transfers
from permalake.wormhole.tables import transfers_daily as daily
from permalake.wormhole.tables.carried_state import Tables, attested_until
from permalake.wormhole.tables.chain_details import chain_details
from permalake.wormhole.tables.chain_questions import questions
from permalake.wormhole.tables.governor_usage import governor_usage_daily
from permalake.wormhole.tables.nearest_quotes import WANTED
from permalake.wormhole.tables.token_metadata import TOKEN, completed, token_metadata


def enriched(
    spark: SparkSession,
    settings: Settings,
    table: Tables,
    start: dt.date,
    end: dt.date,
    *,
    sound_before: dt.date,
    providers: Sequence[PriceProvider],
    cross_check: PriceProvider | None,
    chains: Chains,
) -> dict[str, DataFrame]:
    """Frames of the tables that follow from the events of ``start..end``, by table name.

    ``table`` gives a whole table by name: history as published, and the range as staged. ``sound_before``:
    see :func:`~permalake.wormhole.tables.carried_state.attested_until`. ``providers`` tell prices, the first
    one first, ``cross_check`` what to compare them with; ``chains`` what only RPCs know.
    """
    # Kept by checkpoint, here and in what this calls: of cached frames that stand in each other Spark writes
    # the whole plan at every stage of every query, and works them out again when a cache below them grows.
    reference = settings.wormhole.reference if settings.wormhole else None
    inside = F.col("date").between(F.lit(start), F.lit(end))
    events, payloads = table("message_publication"), table("token_transfer_payload").where(inside)
    listed = spark.createDataFrame(load_reference(reference).token_table())
    known_chains = load_reference(reference).chains
    attested = attested_until(table, end, sound_before).where(inside)
    moved = table("application_transfers").where(inside)
    own = applications.own_transfers(moved, events.where(inside))
    tokens = payloads.select("date", *TOKEN).unionByName(own.select("date", *TOKEN))
    metadata = token_metadata(tokens, attested, listed).localCheckpoint()
    nfts, published = table("nft_transfer_payload").where(inside), events.where(inside)
    unstated = own.where("amount_decimals IS NULL")
    asked = questions(payloads, nfts, published, metadata, known_chains, others=unstated, reference=reference)
    told = chains.answers(spark, asked).localCheckpoint()
    complete = completed(metadata, tokens, told).localCheckpoint()
    known = transfers.identified(payloads, published, complete)
    known = transfers.named(known, told, reference).localCheckpoint()
    own = applications.measured(own, complete).localCheckpoint()
    wanted = priceable(spark, reference, known.select(*WANTED).unionByName(own.select(*WANTED)))
    window_hours = settings.prices.window_hours
    priced = price_providers.priced(spark, providers, wanted, window_hours)
    checked = None
    if cross_check is not None:
        checked = price_providers.priced(spark, [cross_check], priced.select(*WANTED), window_hours)
    unpriced = wanted.join(priced, list(WANTED), "left_anti")
    standing = stand_ins(spark, load_reference(reference), providers, unpriced, window_hours)
    details = transfers.token_transfer_details(known, priced, checked, standing.prices).localCheckpoint()
    used = [quotes for quotes in (priced, checked, standing.quotes) if quotes is not None]
    moved_details = applications.application_transfer_details(
        moved, own, priced, details, reference
    ).localCheckpoint()
    on_chain = chain_details(known, nfts, told, reference).localCheckpoint()
    return {
        "token_transfer_details": details,
        "chain_details": on_chain,
        "application_transfer_details": moved_details,
        "applications_daily": applications.applications_daily(
            table("application_messages").where(inside), moved, moved_details, details
        ),
        "token_prices": transfers.token_prices(reduce(DataFrame.unionByName, used)),
        "notional_transferred_daily": daily.notional_transferred_daily(known, details),
        "addresses_daily": daily.addresses_daily(known, on_chain),
        "governor_usage_daily": governor_usage_daily(
            known,
            details,
            listed.select("chain", "token_address").toDF(*TOKEN),
            spark.createDataFrame(load_reference(reference).limit_table()),
        ),
    }


def priceable(spark: SparkSession, reference: Path | None, wanted: DataFrame) -> DataFrame:
    """Return the distinct wants of tokens that are not denied."""
    denied = spark.createDataFrame(load_reference(reference).denied_table()).toDF(*TOKEN)
    return wanted.join(F.broadcast(denied), [*TOKEN], "left_anti").select(*WANTED).distinct()
