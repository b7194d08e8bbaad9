"""Job ``ingest_decode`` of an IOTA network: source → proven, decoded rows → staged tables and quarantine."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from permalake import jobs
from permalake.config import load_settings
from permalake.contracts import IOTA_TABLES
from permalake.errors import PermalakeError
from permalake.lake import Lake
from permalake.session import session
from permalake.sources.iota import open_source
from permalake.transforms import cone_verdict
from permalake.transforms.cone import ConeRules, decoded
from permalake.transforms.decoded import DECODED
from permalake.transforms.iota_tables import base_tables


def main(argv: Sequence[str] | None = None, spark: SparkSession | None = None) -> None:
    job = jobs.arguments("iota_ingest", argv)
    settings = load_settings()
    network = settings.network(job.network)
    spark = spark or session(f"iota_ingest {job}")
    source = open_source(spark, job.network, network)
    days = source.days(job.start, job.end)
    lake = Lake(settings)
    attempt = lake.begin(
        job.network, job.start, job.end, job.run_id, fingerprint=source.fingerprint(job.start, job.end)
    )
    if not network.coordinator_public_keys:
        attempt.note("coordinator keys are unchecked")
    rows = spark.createDataFrame([], DECODED)
    if days:
        jobs.say(f"ingest {job}: milestones {days[0].first} to {days[-1].last} on {len(days)} days")
        keys, threshold = network.coordinator_public_keys, network.coordinator_threshold
        rules = ConeRules(
            network.protocol, network.bech32_hrp, tuple(days), source.first_milestone, keys, threshold
        )
        rows = decoded(source.records(days), rules)
    else:
        jobs.say(f"ingest {job}: no milestones; earlier rows are replaced by none")
    rows.write.mode("overwrite").parquet(attempt.landing)
    landed = spark.read.schema(DECODED).parquet(attempt.landing)
    refused = cone_verdict.refused_days(landed, days)
    for day, reason in refused.items():
        attempt.refuse(day, reason)
        jobs.say(f"ingest {job}: {day} will not be published: {reason}")
    quarantined = attempt.quarantine(cone_verdict.quarantine(landed, source.name))
    if days and len(refused) == len(days):
        raise PermalakeError(f"{job.network}: " + "; ".join(f"{day}: {why}" for day, why in refused.items()))
    jobs.stage(attempt, base_tables(landed, network.chunk_size), IOTA_TABLES)
    jobs.say(f"ingest {job}: {jobs.counted(attempt, 'messages', 'milestones')}, {quarantined} quarantined")


if __name__ == "__main__":
    jobs.run(main)
