"""What a task reads from its Airflow context and from the lake about the days it works on."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

from permalake.config import Settings
from permalake.orchestrate.fingerprint import fingerprint
from permalake.orchestrate.request import BuildRequest, request_of

# Key of a DAG run's conf by which a run without a scheduler brings a run id of its own.
RUN_ID = "permalake_run_id"


def request_from(settings: Settings, kind: str, context: Any) -> BuildRequest:
    """The run's parameters; without days, the UTC day of its data interval."""
    run_id = (context["dag_run"].conf or {}).get(RUN_ID) or context["run_id"]
    return request_of(settings, kind, context["params"], interval_day(context), run_id)


def interval_day(context: Any) -> date:
    """The day of the run's data interval; a run that has none is about yesterday."""
    start: datetime | None = context.get("data_interval_start")
    return (start or datetime.now(UTC) - timedelta(days=1)).astimezone(UTC).date()


def unchanged(settings: Settings, request: BuildRequest) -> bool:
    """Whether all days are published, built from the very inputs and configuration of now, and the run was
    not told to build them anyway."""
    if request.force or request.only:
        return False
    digest = fingerprint(settings, request.network)
    if digest is None:
        return False
    from permalake.lake import Lake

    return Lake(settings).unchanged(request.network, request.start, request.end, digest)


def step_counts(settings: Settings, request: BuildRequest) -> dict[str, int]:
    """Rows staged so far by the run's attempt, by table."""
    from permalake.lake import Lake

    return Lake(settings).resume(request.network, request.run_id).rows()
