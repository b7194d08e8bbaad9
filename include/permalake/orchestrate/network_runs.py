"""One run per network and day, where several networks of a domain are configured.

A run with an interval of its own (scheduled, or of a backfill) that names no network builds the first one
configured, and starts a run of the same DAG for each of the others, but for those that are not ``scheduled``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.sdk.exceptions import AirflowException

from permalake.config import Settings
from permalake.pipeline.domain import Domain
from permalake.pipeline.request import run_name

SCHEDULED = "permalake_scheduled"
"""Key of a run's conf: it was started by a scheduled run and shares its deadline."""
BACKFILL = "permalake_backfill"
"""Key of a run's conf: it was started by a run of a backfill and belongs to that backfill."""
_KEY_OF = {"scheduled": SCHEDULED, "backfill": BACKFILL}
"""What runs with an interval, by their type, leave in the conf of those that they start."""


def type_of(run: Any) -> str:
    """``scheduled``, ``manual``, ``backfill``: a task is given an enumeration whose text is not its value."""
    return str(getattr(run.run_type, "value", run.run_type))


def names_no_network(domain: Domain, params: Mapping[str, Any], run_type: str) -> bool:
    """Return whether a run is meant for every configured network."""
    return domain.namespace is None and run_type in _KEY_OF and not params.get("network")


def first_network(settings: Settings, domain: Domain) -> str | None:
    """Return the network that such a run builds itself."""
    return next(iter(scheduled_networks(settings, domain)), None)


def start_others(settings: Settings, domain: Domain, context: Any, day: str) -> list[str]:
    """Start a run of this DAG for every network but the first; return the ids of the new ones.

    A run that is there already (this one was cleared and runs again) is left as it is.
    """
    run = context["dag_run"]
    started = []
    for network in scheduled_networks(settings, domain)[1:]:
        conf = {name: value for name, value in (run.conf or {}).items() if value is not None}
        conf |= {"network": network, "start": day}
        conf[_KEY_OF[type_of(run)]] = True
        run_id = f"{run_name(network, day, day)}__{run.run_id.rpartition(f'_{day}__')[2]}"
        if start_run(context["ti"].dag_id, run_id, conf):
            started.append(run_id)
    return started


def scheduled_networks(settings: Settings, domain: Domain) -> list[str]:
    """Return the networks that a run is meant for which names none, in the order of the configuration."""
    left_out = {name for name, section in settings.networks.items() if not section.scheduled}
    return [name for name in domain.networks(settings) if name not in left_out]


def start_run(dag_id: str, run_id: str, conf: dict[str, Any]) -> bool:
    """Ask Airflow for a run, as TriggerDagRunOperator does; false when there is one of this id."""
    from airflow.sdk.exceptions import ErrorType
    from airflow.sdk.execution_time import task_runner
    from airflow.sdk.execution_time.comms import ErrorResponse, TriggerDagRun

    answer = task_runner.SUPERVISOR_COMMS.send(TriggerDagRun(dag_id=dag_id, run_id=run_id, conf=conf))
    if not isinstance(answer, ErrorResponse):
        return True
    if answer.error == ErrorType.DAGRUN_ALREADY_EXISTS:
        return False
    raise AirflowException(f"a run for {conf['network']} could not be started: {answer.detail}")
