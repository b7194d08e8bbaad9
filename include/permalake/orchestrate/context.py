"""The request of a task's run, from its Airflow context."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from permalake.config import Settings
from permalake.errors import ConfigError
from permalake.orchestrate.network_runs import first_network, names_no_network, type_of
from permalake.pipeline.domain import Domain
from permalake.pipeline.request import RUN_ID, BuildRequest, request_of

if TYPE_CHECKING:
    from permalake.pipeline.workspace import Workspace

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.~:+-]{0,249}")


def request_from(settings: Settings, domain: Domain, context: Any) -> BuildRequest:
    """Return what the run asks for; without days, that of :func:`interval_day`."""
    run = context["dag_run"]
    run_id = _checked_run_id((run.conf or {}).get(RUN_ID) or context["run_id"])
    given = dict(context["params"])
    if names_no_network(domain, given, type_of(run)):
        given["network"] = first_network(settings, domain)
    return request_of(settings, domain, given, interval_day(context), run_id, dag_run=context["run_id"])


def adopted(work: Workspace, request: BuildRequest, context: Any) -> BuildRequest:
    """Return the request with the run whose staging it goes on with, where its first task adopted one."""
    from permalake.pipeline.runs import startable

    if not request.only:
        return request
    step = request.domain.step_of(request.only)
    if run_id := context["ti"].xcom_pull(task_ids=step.name, key=RUN_ID):
        return replace(request, run_id=run_id)
    return startable(work, request)


def _checked_run_id(run_id: object) -> str:
    """Return the run id if it is one: it becomes a key of the catalog, a file name and a job's argument.

    Raises:
        ConfigError: if it is anything else; a DAG run's conf may hold any JSON.
    """
    if isinstance(run_id, str) and _RUN_ID.fullmatch(run_id):
        return run_id
    raise ConfigError(
        f"{RUN_ID} {str(run_id)[:60]!r}: not a run id; use up to 250 letters, digits and _.~:+-, the first a "
        "letter or digit, or leave it out of the run's conf"
    )


def interval_day(context: Any) -> date:
    """Return the UTC day of the run's data interval.

    A run that has none is about the day before the one on which it was triggered, for each task and each try.
    """
    begin: datetime = context.get("data_interval_start") or context["dag_run"].run_after - timedelta(days=1)
    return begin.astimezone(UTC).date()
