"""Job ``ingest_decode`` of Wormhole: source → verified, decoded VAAs → staged event tables and quarantine."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from permalake.config import load_settings
from permalake.contracts import WORMHOLE_TABLES
from permalake.lake import Lake
from permalake.pipeline import jobs
from permalake.spark.session import session
from permalake.wormhole.contracts.tables import ATTESTED_TOKENS, CHAIN_ANSWERS
from permalake.wormhole.sources.day_input import WormholeInput
from permalake.wormhole.sources.wormhole_source import Days, section
from permalake.wormhole.tables.documents import candidates
from permalake.wormhole.tables.event_tables import events
from permalake.wormhole.tables.observations import observations
from permalake.wormhole.tables.reported_details import reported_senders
from permalake.wormhole.tables.verified_vaas import conflicts_elsewhere, judged, of_bridges, quarantine


def main(argv: Sequence[str] | None = None, spark: SparkSession | None = None) -> None:
    job = jobs.arguments("wormhole_ingest", argv)
    settings = load_settings()
    spark = spark or session(f"wormhole_ingest {job}")
    lake = Lake(settings)
    given = WormholeInput(spark, settings, lake, Days(job.start, job.end, job.force))
    attempt = lake.begin(job.network, job.start, job.end, job.run_id, fingerprint=job.fingerprint)
    jobs.say(f"ingest {job}: verifying")
    reference = section(settings).reference
    # Kept by checkpoint: of cached frames that stand in each other Spark writes the whole plan each time.
    vaas = judged(candidates(given.documents, job.start, job.end), reference).localCheckpoint()
    quarantined = attempt.quarantine(quarantine(vaas))
    frames = events(vaas, attempt.before(spark, ATTESTED_TOKENS.name))
    if (observed := given.observations) is not None:
        frames["observations"] = observations(observed, frames["message_publication"], reference)
    jobs.stage(attempt, frames, WORMHOLE_TABLES)
    attempt.outdate_later(spark, ATTESTED_TOKENS)
    if (senders := given.senders) is not None:
        attempt.keep(reported_senders(of_bridges(vaas).join(senders, "row_key")), CHAIN_ANSWERS)
    whole = attempt.table(spark, "message_publication")
    for cause, other in conflicts_elsewhere(vaas, whole):
        attempt.outdate(other, other, f"another VAA of the same message lies on {cause}", cause)
    given.report(attempt)
    jobs.say(f"ingest {job}: {jobs.counted(attempt, 'message_publication')}, {quarantined} quarantined")


if __name__ == "__main__":
    jobs.run(main)
