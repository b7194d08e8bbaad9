"""The sensor before ``serve``: it waits until every configured store answers."""

from __future__ import annotations

import logging
import time
from datetime import timedelta
from typing import Any

from airflow.sdk import BaseSensorOperator
from airflow.sdk.exceptions import AirflowException, AirflowSensorTimeout, AirflowSkipException

from permalake.contracts.steps import Step
from permalake.errors import PermalakeError
from permalake.orchestrate.connections import store_variables
from permalake.orchestrate.step_task import StepTask, failure, report_failure
from permalake.pipeline.domain import Domain

LOG = logging.getLogger(__name__)
PATIENCE = timedelta(hours=1)
"""How long a store may be down before the task fails: time to restart or upgrade it."""
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
        started = time.monotonic()
        try:
            return super().execute(context)
        except AirflowSensorTimeout:
            waited = f"; waited {self.timeout / 60:.0f} minutes, and the next run tries again"
            error: AirflowException = AirflowSensorTimeout(self._reason + (waited if self.timeout else ""))
        except AirflowException:  # skipped, or asked again later
            raise
        except Exception as fault:  # noqa: BLE001 - one line for users, whatever it is
            error = failure(fault)
        report_failure(self.task_id, started, error)
        raise error

    def poke(self, context: Any) -> bool:
        """Return whether every store answers; log which one does not, and why."""
        from permalake.pipeline.jobs import StepContext
        from permalake.pipeline.runs import order_of
        from permalake.pipeline.steps import wait

        self._reason = ""
        with store_variables(self.domain):
            work, request = self.open(context)
            stores = self.domain.configured_stores(work.settings)
            if not stores:
                raise AirflowSkipException(f"no store is configured for {request.network}")
            try:
                wait.run(StepContext(work, order_of(request), self.step))
            except PermalakeError as error:
                if not error.retryable:
                    raise
                self._reason = str(error)
        if self._reason:
            names = " and ".join(store.name.capitalize() for store in stores)
            LOG.info("waiting for %s: %s", names, self._reason)
        return not self._reason
