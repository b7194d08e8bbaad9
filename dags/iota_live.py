"""Follows an IOTA network's node between the days that are built.

One task, **follow**: a Spark job that stays, asks the node for new milestones, proves and decodes them with
their cones as days are, and adds them to the network's live head, the namespace `NETWORK_live`. The head is
provisional: nothing of it is audited, and the publication of a day takes its rows out of the head in the same
transaction. `messages_with_live` and its like have both, each row once.

The DAG is paused until you configure a node (`[networks.NAME] source = "node"`) and unpause it. Only one run
at a time follows a network. It ends after six hours, and the next run continues where the head ends; so
does a run after a failure or a kill. After three failed runs in a row the DAG is paused again.
`permalake live iota` does the same without Airflow.
"""

from airflow.sdk import DAG

from permalake.iota.day import IOTA
from permalake.orchestrate.live_dag import live_dag

# Airflow reads only files that name it.
dag: DAG = live_dag(IOTA, doc=__doc__, tags=["iota", "tangle"])
