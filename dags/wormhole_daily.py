"""Builds one UTC day of Wormhole: verified VAAs, their payloads, prices and daily analytics.

Seven tasks, each safe to run again: **ingest_decode** verifies every VAA against its guardian set and decodes
it; **enrich_analytics** adds decimals, prices and chain details and computes the daily figures; **audit** has
Great Expectations judge what was staged; **publish** shows all tables of the day to readers in one
transaction, or none; **carry** continues the tables of the state at each day's end; **wait_for_store** and
**serve** write what is published into Bigtable, where that is configured.

A scheduled run builds the day before. Trigger it by hand with a first and last day to build a range in the
same few Spark submits; start at *enrich* to fill in prices that were missing. The first submit of a small day
does the Spark steps after it as well; their tasks take over what it has done. A VAA that does not verify is
quarantined alone; the rest of its day goes on.
"""

from airflow.sdk import DAG

from permalake.orchestrate.dag import daily_dag
from permalake.wormhole.day import WORMHOLE

# Airflow reads only files that name it.
dag: DAG = daily_dag(WORMHOLE, doc=__doc__, tags=["wormhole", "bridge"])
