"""Job ``enrich_analytics`` of Wormhole: staged events → prices, chain details and the daily analytics."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pyspark.sql import SparkSession

from permalake.config import load_settings
from permalake.contracts import WORMHOLE_TABLES
from permalake.lake import Lake
from permalake.pipeline import jobs
from permalake.spark.session import session
from permalake.wormhole.contracts.tables import CHAIN_ANSWERS, MESSAGE_PUBLICATION, TOKEN_PRICES, TVL_DAILY
from permalake.wormhole.enrich.chains import AnswerCache, Chains
from permalake.wormhole.enrich.enriched_days import enriched
from permalake.wormhole.enrich.price_cache import LakeCache
from permalake.wormhole.enrich.price_providers import providers
from permalake.wormhole.enrich.rpcs import rpcs


def main(argv: Sequence[str] | None = None, spark: SparkSession | None = None) -> None:
    job = jobs.arguments("wormhole_enrich", argv)
    settings = load_settings()
    spark = spark or session(f"wormhole_enrich {job}")
    lake = Lake(settings)
    attempt = lake.resume_or_begin(job.network, job.start, job.end, job.run_id)
    jobs.say(f"enrich {job}: prices, chain details, analytics")
    cache = LakeCache(
        read=lambda session: attempt.table(session, TOKEN_PRICES.name),
        add=lambda quotes: attempt.keep(quotes, TOKEN_PRICES),
        memory=lake.asked_prices,
        remark=attempt.note,
    )
    # A run that starts here fills in: what came to nothing is asked for once more.
    again = MESSAGE_PUBLICATION.name not in attempt.changed()
    answers = AnswerCache(
        read=lambda session: attempt.table(session, CHAIN_ANSWERS.name),
        add=lambda rows: attempt.keep(rows, CHAIN_ANSWERS),
        remark=attempt.note,
    )
    with Chains(rpcs(settings), answers, again=again) as chains:
        frames = enriched(
            spark,
            settings,
            partial(attempt.table, spark),
            job.start,
            job.end,
            providers=providers(settings, cache, again),
            chains=chains,
        )
    quotes = attempt.keep(frames.pop(TOKEN_PRICES.name), TOKEN_PRICES)
    jobs.stage(attempt, frames, WORMHOLE_TABLES)
    attempt.outdate_later(spark, TVL_DAILY)
    jobs.say(f"enrich {job}: {jobs.counted(attempt, 'token_transfer_details')}, {quotes} new quotes")


if __name__ == "__main__":
    jobs.run(main)
