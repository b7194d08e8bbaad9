"""Job ``ingest_decode`` of Wormhole: source → verified, decoded VAAs → staged event tables and quarantine."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark import StorageLevel
from pyspark.sql import SparkSession

from permalake import jobs
from permalake.config import load_settings
from permalake.contracts import WORMHOLE_TABLES
from permalake.lake import Lake
from permalake.session import session
from permalake.sources import wormhole
from permalake.transforms.wormhole_documents import candidates
from permalake.transforms.wormhole_events import events
from permalake.transforms.wormhole_vaas import judged, quarantine


def main(argv: Sequence[str] | None = None, spark: SparkSession | None = None) -> None:
    job = jobs.arguments("wormhole_ingest", argv)
    settings = load_settings()
    spark = spark or session(f"wormhole_ingest {job}")
    source = wormhole.section(settings)
    documents = wormhole.documents(spark, source)
    attempt = Lake(settings).begin(job.network, job.start, job.end, job.run_id, fingerprint=job.fingerprint)
    jobs.say(f"ingest {job}: verifying")
    vaas = judged(candidates(documents, job.start, job.end), source.reference)
    vaas.persist(StorageLevel.MEMORY_AND_DISK)
    quarantined = attempt.quarantine(quarantine(vaas))
    jobs.stage(attempt, events(vaas), WORMHOLE_TABLES)
    jobs.say(f"ingest {job}: {jobs.counted(attempt, 'message_publication')}, {quarantined} quarantined")


if __name__ == "__main__":
    jobs.run(main)
