"""Builds one UTC day of an IOTA network, from raw milestones to published tables.

Seven tasks, each safe to run again: **ingest_decode** reads the day's milestones, verifies every id,
signature and Merkle root and decodes them; **analytics** computes the daily figures; **audit** lets Great
Expectations judge what was staged; **publish** shows all tables of the day to readers in one transaction, or
none; **carry** continues the tables of the state at each day's end; **wait_for_store** and **serve** write
what is published into Cassandra, where that is configured.

A scheduled run builds the day before. Trigger it by hand with a first and last day to build a range in the
same few Spark submits, or with a step to start at. The first submit of a small day does the Spark steps after
it as well; their tasks take over what it has done. A day that fails stays unpublished, and readers keep the
last good state; clear the failed task, or run the day again, once its cause is mended.
"""

from airflow.sdk import DAG

from permalake.iota.day import IOTA
from permalake.orchestrate.dag import daily_dag

# Airflow reads only files that name it.
dag: DAG = daily_dag(IOTA, doc=__doc__, tags=["iota", "tangle"])
