"""Job ``ingest_decode`` of an IOTA network: source → proven, decoded rows → staged tables and quarantine."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pyspark.sql import SparkSession

from permalake.config import load_settings
from permalake.contracts import IOTA_TABLES
from permalake.errors import PermalakeError, RefusedError
from permalake.iota.cone.conflict_reasons import pending_count
from permalake.iota.cone.decoded import DECODED
from permalake.iota.cone.source_records import MilestoneDay
from permalake.iota.cone.verdict import disagreements, quarantine, refused_days
from permalake.iota.sources.chronicle import Published
from permalake.iota.sources.iota_source import decoded_days, open_source, resolved_days
from permalake.iota.tables.day_tables import base_tables
from permalake.lake import Lake
from permalake.pipeline import jobs
from permalake.spark.session import session


def main(argv: Sequence[str] | None = None, spark: SparkSession | None = None) -> None:
    job = jobs.arguments("iota_ingest", argv)
    settings = load_settings()
    network = settings.network(job.network)
    spark = spark or session(f"iota_ingest {job}")
    lake = Lake(settings)
    source = open_source(spark, job.network, network, published(lake, spark, job.network))
    days = source.days(job.start, job.end)
    jobs.say(f"ingest {job}: {described(days)}")
    attempt = lake.begin(job.network, job.start, job.end, job.run_id, fingerprint=job.fingerprint)
    if not network.coordinator_public_keys:
        attempt.note("coordinator keys are unchecked")
    rows = decoded_days(source, days, network) if days else spark.createDataFrame([], DECODED)
    landed = jobs.land(rows, attempt.landing)
    if pending := pending_count(landed):
        table = partial(lake.table, spark, job.network)
        rows = resolved_days(landed, network, pending, table, days[0].date)
        landed = jobs.land(rows, attempt.landing, more=True)
    quarantined = attempt.quarantine(quarantine(landed, source.name))
    for day, count in disagreements(landed).items() if quarantined else ():
        attempt.note(f"conflicts unlike the source's: {count} (quarantine: conflict_disagreement)", day)
    refused = refused_days(landed, days)
    source.distrust(refused, days)
    for day, reason in refused.items():
        attempt.refuse(day, reason)
        jobs.say(f"ingest {job}: {day} stays unpublished: {reason}")
    if days and len(refused) == len(days):
        reasons = "; ".join(f"{job.network} {day}: {why}" for day, why in refused.items())
        # A live source, which has no fingerprint, may answer better next time.
        raise (RefusedError if job.fingerprint else PermalakeError)(reasons)
    jobs.stage(attempt, base_tables(landed, network.chunk_size), IOTA_TABLES)
    jobs.say(f"ingest {job}: {jobs.counted(attempt, 'messages', 'milestones')}, {quarantined} quarantined")


def published(lake: Lake, spark: SparkSession, network: str) -> Published:
    """What a source may ask of the days before."""
    return Published(
        dates=lambda: {day.date for day in lake.status(network) if day.published},
        table=partial(lake.table, spark, network),
    )


def described(days: Sequence[MilestoneDay]) -> str:
    if not days:
        return "no milestones; earlier rows are replaced by none"
    return f"milestones {days[0].first} to {days[-1].last} of {len(days)} days"


if __name__ == "__main__":
    jobs.run(main)
