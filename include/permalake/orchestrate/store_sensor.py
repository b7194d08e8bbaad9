"""The sensor before ``serve``: it waits until every configured store answers."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

from airflow.sdk import BaseSensorOperator
from airflow.sdk.exceptions import AirflowSensorTimeout, AirflowSkipException

from permalake.contracts.steps import Step
from permalake.orchestrate.step_task import StepTask, failure_of, no_submit
from permalake.pipeline.domain import Domain

LOG = logging.getLogger(__name__)
PATIENCE = timedelta(hours=1)
"""The time that a store may be down before the task fails: enough to restart or upgrade it."""
_BETWEEN = timedelta(minutes=1)


class StoreSensor(StepTask, BaseSensorOperator):
    """Waits for the stores of a domain, without a worker: it is rescheduled every minute.

    It runs wherever a run starts, because ``serve`` also runs when nothing was built. A wrong configuration
    or login fails it at once; a store that is down for longer than the time-out fails it with the reason.
    """

    def __init__(self, *, domain: Domain, step: Step, **kwargs: Any) -> None:
        super().__init__(
            task_id=step.name, mode="reschedule", poke_interval=_BETWEEN, timeout=PATIENCE, **kwargs
        )
        self.domain = domain
        self.step = step
        self._reason = ""

    def execute(self, context: Any) -> Any:
        """Wait; end with the reason when the time is up."""
        try:
            return super().execute(context)
        except AirflowSensorTimeout:
            waited = f"; waited {self.timeout / 60:.0f} minutes, and the next run tries again"
            reason = self._reason + (waited if self.timeout else "")
            self.report(context, reason)
            raise AirflowSensorTimeout(reason) from None

    def poke(self, context: Any) -> bool:
        """Return whether every store answers; log which one does not, and why."""
        from permalake.pipeline.execution import execute

        with self.opened(context) as (work, request):
            outcome = execute(work, request, self.step, no_submit)
        result = outcome.result
        if result.state == "skipped":
            raise AirflowSkipException(result.reason)
        if outcome.is_failure and not result.retryable:
            raise failure_of(result)
        self._reason = result.reason or ""
        if outcome.is_failure:
            names = " and ".join(
                store.name.capitalize() for store in work.domain.configured_stores(work.settings)
            )
            LOG.info("waiting for %s: %s", names, self._reason)
        return not outcome.is_failure
