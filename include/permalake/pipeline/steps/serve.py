"""Step ``serve``: published days → the stores that are configured.

Writes every published day that a store does not have yet, not only the run's own days: whatever a store
missed while it was down is caught up by the next run.
"""

from __future__ import annotations

from permalake.contracts.steps import StepResult
from permalake.pipeline.jobs import StepContext
from permalake.stores.serve import serve


def run(context: StepContext) -> StepResult:
    """Write the due days; the result counts the days that each store received."""
    work, network = context.work, context.arguments.network
    stores = work.domain.configured_stores(work.settings)
    served = {}
    for store, days in serve(context.spark, work.settings, network, stores).items():
        served[store] = len(days)
        context.report(f"serve {network}: {len(days)} days into {store}")
    return StepResult(served=served)
