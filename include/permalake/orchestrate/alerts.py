"""The alerts of Airflow's runs: a task failed for good, a run took too long, or a day is late."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from permalake.config import Settings, load_settings
from permalake.contracts.steps import StepResult
from permalake.domains import DOMAINS, open_reader
from permalake.errors import PermalakeError
from permalake.orchestrate.network_runs import first_network
from permalake.pipeline.alerts import Alert, alert_of, send

log = logging.getLogger(__name__)
PAGES_PATH = "/permalake"
"""The prefix of the project's own pages on Airflow's server."""
TIMED_OUT = "timed_out"
"""Airflow's reason of a run that took longer than its DAG allows."""


def on_failure(context: Any) -> None:
    """Send an alert for a task that has used up its retries; called by Airflow.

    It never raises: an alert that cannot be sent is a line in the log.
    """
    described = describe(context)
    log.error("%s", described["text"])
    send(described)


def on_timeout(context: Any) -> None:
    """Send an alert for a run that Airflow ended because it took too long; called by Airflow.

    Its tasks are skipped then, and call nothing. Runs that fail for another reason had the alert of a task.
    """
    if context.get("reason") != TIMED_OUT:
        return
    described = timed_out(context)
    log.error("%s", described["text"])
    send(described)


def timed_out(context: Any) -> Alert:
    """Return the alert of a run that took too long.

    Where Airflow knows no task that was under way, the context has the DAG and the run's id alone: network
    and day are empty then.
    """
    dag, run = str(context["dag"].dag_id), str(context["run_id"])
    network, day = _subject(context, dag) if "params" in context else ("", "")
    facts = {
        "event": "failed",
        "dag": dag,
        "run": run,
        "network": network,
        "day": day,
        "step": "run",
        "reason": "the run took too long and was ended",
        "link": _run_link(dag, run),
        "docs": "",
    }
    return alert_of(**facts)


def describe(context: Any) -> Alert:
    """DAG, run, network, day, step, reason and links of a failure, and all of it as one line of text."""
    instance = context["ti"]
    network, day = _subject(context, str(instance.dag_id))
    recorded = _recorded(network, str(instance.run_id), str(instance.task_id))
    raised = (str(context.get("exception") or "").splitlines() or [""])[0]
    if recorded and raised and raised != recorded.failure:
        recorded = None  # an earlier try's: this one failed before it began its step
    facts = {
        "event": "failed",
        "dag": str(instance.dag_id),
        "run": str(instance.run_id),
        "network": network,
        "day": day,
        "step": str(instance.task_id),
        "reason": (recorded.reason if recorded else None) or raised,
        "link": str(getattr(instance, "log_url", "") or ""),
        "docs": _docs_link((recorded.docs if recorded else None) or ""),
    }
    return alert_of(**facts)


def missed(context: Mapping[str, Any]) -> Alert | None:
    """Return the alert of a run that is not through at its deadline.

    None when its day is published already and only later steps are late, such as serving a store that is
    down.
    """
    run = context["dag_run"]
    conf = run.get("conf") or {}
    dag, run_id = str(run["dag_id"]), str(run.get("dag_run_id") or run.get("run_id"))
    day = conf.get("start") or str(run.get("data_interval_start") or "")[:10]
    network = str(conf.get("network") or _network(dag) or "")
    if _is_published(network, day):
        log.info("%s %s is published in time; its run %s goes on", network, day, run_id)
        return None
    due = context["deadline"]["deadline_time"]
    moment = due if isinstance(due, datetime) else datetime.fromisoformat(str(due))
    facts = {
        "event": "late",
        "dag": dag,
        "run": run_id,
        "network": network,
        "day": day,
        "step": "publish",
        "reason": f"not published by {moment:%Y-%m-%d %H:%M} UTC; the run is {run.get('state') or 'unknown'}",
        "link": _run_link(dag, run_id),
        "docs": "",
    }
    return alert_of(**facts)


def base_url() -> str:
    """Address of Airflow's server, as its configuration has it."""
    from airflow.configuration import conf

    return str(conf.get("api", "base_url", fallback="http://localhost:8080")).rstrip("/")


def _run_link(dag: str, run: str) -> str:
    return f"{base_url()}/dags/{quote(dag)}/runs/{quote(run)}"


def _docs_link(page: str) -> str:
    """Return the address of Data Docs on Airflow's server."""
    from permalake.audit import docs

    if not page:
        return ""
    path = Path(page.strip())
    if not path.is_relative_to(docs.root()):
        return str(path)
    return f"{base_url()}{PAGES_PATH}/audit/{quote(path.relative_to(docs.root()).as_posix())}"


def _subject(context: Any, dag: str) -> tuple[str, str]:
    """Return network and days of a run; empty is what it does not name."""
    given = context.get("params") or {}
    interval = context.get("data_interval_start")
    start = str(given.get("start") or (interval.date() if interval else ""))
    end = str(given.get("end") or start)
    network = str(given.get("network") or _network(dag) or "")
    return network, start if start == end else f"{start}..{end}"


def _network(dag: str) -> str | None:
    """Return the network of a run that names none."""
    try:
        settings = load_settings()
    except PermalakeError:
        return None
    return next((first_network(settings, domain) for domain in DOMAINS if domain.dag_id == dag), None)


def _recorded(network: str, run_id: str, step: str) -> StepResult | None:
    """Return a task's row of the step ledger; None if the ledger does not answer or has none."""
    from permalake.lake.identity import open_database
    from permalake.lake.step_ledger import StepLedger

    try:
        ledger = StepLedger(open_database(load_settings()))
        rows = [row for row in ledger.of_run(run_id, network) if row.key.step == step]
    except PermalakeError as error:
        log.warning("the ledger of steps does not answer: %s", error)
        return None
    return rows[-1].result if rows else None


def _is_published(network: str, day: str) -> bool:
    try:
        settings: Settings = load_settings()
        day_rows = open_reader(settings).status(network)
        return any(
            row.date == date.fromisoformat(day) and row.published and not row.error for row in day_rows
        )
    except (PermalakeError, ValueError) as error:
        log.warning("whether %s %s is published is not known: %s", network, day, error)
        return False
