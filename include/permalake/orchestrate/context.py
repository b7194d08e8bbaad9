"""What a task reads from its Airflow context and from the lake about the days it works on."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from permalake.config import Settings
from permalake.errors import ConfigError, PermalakeError
from permalake.lake import Lake
from permalake.orchestrate.network_runs import first_network, names_no_network, type_of
from permalake.pipeline.domain import NEED_LANDING, task_of
from permalake.pipeline.fingerprint import fingerprint
from permalake.pipeline.progress import emit
from permalake.pipeline.request import BuildRequest, request_of

# Key of a DAG run's conf by which a run without a scheduler brings a run id of its own, and of the XCom by
# which a run that starts at a later step tells which run's staging it goes on with.
RUN_ID = "permalake_run_id"
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.~:+-]{0,249}")
log = logging.getLogger(__name__)
# It tells a line for each table that it opens, and Airflow shows them all in the task's log.
logging.getLogger("pyiceberg").setLevel(logging.WARNING)
# A run that was killed holds its days for two minutes more; one that lives may well take longer than this.
WAIT_SECONDS = 150


def request_from(settings: Settings, kind: str, context: Any) -> BuildRequest:
    """The run's parameters; without days, the UTC day of its data interval."""
    run = context["dag_run"]
    run_id = _checked_run_id((run.conf or {}).get(RUN_ID) or context["run_id"])
    given = dict(context["params"])
    if names_no_network(kind, given, type_of(run)):
        given["network"] = first_network(settings)
    request = request_of(settings, kind, given, interval_day(context), run_id)
    if not request.only:
        return request
    task = task_of(kind, request.only)
    if adopted := context["ti"].xcom_pull(task_ids=task, key=RUN_ID):
        return replace(request, run_id=adopted)
    if task in NEED_LANDING[kind] and not _unfinished(settings, request):
        # What that task reads is gone with the staging that it was landed for, so the run starts at the top.
        return replace(request, only=None, force=True)
    return request


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


def _unfinished(settings: Settings, request: BuildRequest) -> str | None:
    return Lake(settings).unfinished(request.network, request.start, request.end)


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
    return Lake(settings).unchanged(request.network, request.start, request.end, digest)


def hold(settings: Settings, request: BuildRequest) -> None:
    """Take the days; while another run builds one of them, say so and wait for it a while."""
    lake = Lake(settings)
    days = request.network, request.start, request.end, request.run_id
    lake.ensure(request.network)
    try:
        lake.hold(*days)
    except PermalakeError as busy:
        emit("waiting", step="wait", reason=str(busy))
        log.warning("waiting up to %d s: %s", WAIT_SECONDS, busy)
        lake.hold(*days, wait=WAIT_SECONDS)


def continued(settings: Settings, request: BuildRequest) -> BuildRequest:
    """The request, on the staging that it goes on with: what the last run over these days staged if its
    audit failed or never ended, else a new one as of what is published; :class:`PermalakeError` when these
    days have never been built."""
    lake = Lake(settings)
    hold(settings, request)
    if unfinished := _unfinished(settings, request):
        release(settings, request)
        request = replace(request, run_id=unfinished)
        hold(settings, request)
        return request
    days = lake.status(request.network)
    if not any(day.published and request.start <= day.date <= request.end for day in days):
        raise PermalakeError(f"{request.network} {request.days} has not been built; run it without --only")
    lake.begin(request.network, request.start, request.end, request.run_id).rest()
    return request


def release(settings: Settings, request: BuildRequest) -> None:
    """Let go of the days: this run is over, for better or worse."""
    Lake(settings).release(request.run_id)


def step_counts(settings: Settings, request: BuildRequest) -> dict[str, int]:
    """Rows staged so far by the run's attempt, by table."""
    attempt = Lake(settings).resume(request.network, request.run_id)
    attempt.rest()
    return {table: sum(per_day.values()) for table, per_day in sorted(attempt.counts().items())}


def quarantined(settings: Settings, request: BuildRequest) -> int:
    """Rejected input of the run's days."""
    return Lake(settings).quarantined(request.network, request.start, request.end)
