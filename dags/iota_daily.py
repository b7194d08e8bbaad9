"""Builds one UTC day of an IOTA network, from raw milestones to published tables.

Five steps, each safe to run again: **ingest_decode** reads the day's milestones, verifies every id, signature
and Merkle root and decodes them; **analytics** computes the daily figures; **audit** lets Great Expectations
judge what was staged; **publish** shows all tables of the day to readers in one transaction, or none;
**serve** writes what is published into Cassandra, where that is configured.

A scheduled run builds the day before. Trigger it by hand with a first and last day to build a range in the
same few Spark submits, or with a step to start at. The first submit of a small day does the Spark steps after
it as well; their tasks take over what it has done. A day that fails stays unpublished, and readers keep the
last good state; clear the failed task, or run the day again, once its cause is mended.
"""

from airflow.sdk import chain

from permalake.orchestrate.dag import daily_dag, publish_step, serve_step, spark_step

with daily_dag("iota", doc=__doc__, tags=["iota", "tangle"]) as dag:
    chain(
        spark_step(
            "iota",
            "ingest_decode",
            job="iota_ingest",
            doc="Reads the milestones and what they reference, verifies and decodes them, stages the ledger "
            "tables. A broken cone refuses its day with milestone and reason; bad input is quarantined.",
        ),
        spark_step(
            "iota",
            "analytics",
            job="iota_analytics",
            doc="Computes milestone, address, tag and daily analytics from the staged tables.",
        ),
        spark_step(
            "iota",
            "audit",
            job="audit",
            doc="Judges the staged tables with Great Expectations and the laws of the ledger, day by day, "
            "and leaves Data Docs behind.",
        ),
        publish_step(
            "iota",
            doc="Publishes the passing days, all tables in one transaction, and fails naming the others.",
        ),
        serve_step(
            "iota",
            doc="Writes every published day that Cassandra does not have yet, this run's and any it missed "
            "before. Skipped where no store is configured; a store that is down delays this step alone.",
        ),
    )
