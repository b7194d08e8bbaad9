"""Keeps the lake small and quick: full files, a bounded past, nothing that nobody needs.

Two steps, safe beside running builds and safe to run again: **compact** rewrites days that lie in many small
files, row for row the same, and is skipped when there is none; **tidy** expires snapshots and published
states beyond the retention, discards abandoned staged attempts, and removes orphan files, old landings and
old audit pages.

`[lake] retention_days` says how far back `permalake query --as-of` reads. Staged work is never touched, and a
day that is published meanwhile stays as published. `permalake maintain --dry-run` tells what would be done.
"""

from airflow.sdk import chain

from permalake.orchestrate.maintenance_dag import compact_step, maintenance_dag, tidy_step

with maintenance_dag(doc=__doc__) as dag:
    chain(
        compact_step(
            doc="Rewrites days that lie in more than twice as many files as they need, in one Spark submit."
        ),
        tidy_step(
            doc="Expires snapshots and past states beyond the retention, then removes files that nothing "
            "points to, landings and audit pages of runs that are over. The log has a line per table."
        ),
    )
