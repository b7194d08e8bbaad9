"""Builds one UTC day of Wormhole: verified VAAs, their payloads, prices and daily analytics.

Five steps, each safe to run again: **ingest_decode** verifies every VAA against its guardian set and decodes
it; **enrich_analytics** adds decimals, prices and chain details and computes the daily figures; **audit** has
Great Expectations judge what was staged; **publish** shows all tables of the day to readers in one
transaction, or none; **serve** writes what is published into Bigtable, where that is configured.

A scheduled run builds the day before. Trigger it by hand with a first and last day to build a range in the
same few Spark submits; start at *enrich* to fill in prices that were missing. The first submit of a small day
does the Spark steps after it as well; their tasks take over what it has done. A VAA that does not verify is
quarantined alone; the rest of its day goes on.
"""

from airflow.sdk import chain

from permalake.orchestrate.dag import daily_dag, publish_step, serve_step, spark_step

with daily_dag("wormhole", doc=__doc__, tags=["wormhole", "bridge"]) as dag:
    chain(
        spark_step(
            "wormhole",
            "ingest_decode",
            job="wormhole_ingest",
            doc="Reads the VAAs, verifies every guardian signature, quarantines what fails with its reason, "
            "and stages messages and payloads.",
        ),
        spark_step(
            "wormhole",
            "enrich_analytics",
            job="wormhole_enrich",
            doc="Adds token metadata, the nearest price and chain details to transfers, then computes the "
            "daily analytics of the staged days.",
        ),
        spark_step(
            "wormhole",
            "audit",
            job="audit",
            doc="Judges the staged tables with Great Expectations, day by day, and leaves Data Docs behind.",
        ),
        publish_step(
            "wormhole",
            doc="Publishes the passing days, all tables in one transaction, and fails naming the others.",
        ),
        serve_step(
            "wormhole",
            doc="Writes every published day that Bigtable does not have yet, this run's and any it missed "
            "before. Skipped where no store is configured; a store that is down delays this step alone.",
        ),
    )
