"""Step ``wait_for_store``: every configured store answers and has its tables."""

from __future__ import annotations

from permalake.contracts.steps import StepResult
from permalake.pipeline.jobs import StepContext
from permalake.stores.serve import prepare


def run(context: StepContext) -> StepResult:
    """Prepare the stores; raise :class:`PermalakeError`, which names the store, while one does not answer.

    Without a configured store, or with all of them ready, the step is done.
    """
    work = context.work
    prepare(work.settings, context.arguments.network, work.domain.configured_stores(work.settings))
    return StepResult()
