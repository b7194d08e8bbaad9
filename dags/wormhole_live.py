"""Follows Wormhole's source of VAAs between the days that are built.

One task, **follow**: a Spark job that stays, reads the VAAs that have come, verifies and decodes them as days
do, and adds them to the live head, the namespace `wormhole_live`. The head is provisional: nothing of it is
audited, and the publication of a day takes its rows out of the head in the same transaction.
`message_publication_with_live` and its like have both, each row once.

The DAG is paused until you configure a source that grows (`[wormhole] source` is `files` or `wormholescan`)
and unpause it. Only one run at a time follows it. It ends after six hours, and the next run continues where
the head ends; so does a run after a failure or a kill. After three failed runs in a row the DAG is paused
again. `permalake live wormhole` does the same without Airflow.
"""

from airflow.sdk import DAG

from permalake.orchestrate.live_dag import live_dag
from permalake.wormhole.day import WORMHOLE

# Airflow reads only files that name it.
dag: DAG = live_dag(WORMHOLE, doc=__doc__, tags=["wormhole", "bridge"])
