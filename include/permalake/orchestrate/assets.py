"""The assets of a daily DAG, and what their events say."""

from __future__ import annotations

from math import ceil
from typing import Any

from airflow.sdk import Asset, AssetAlias

from permalake.contracts.steps import CARRY, PUBLISH, SERVE, Step, StepResult
from permalake.pipeline.domain import Domain

MOST_EVENTS = 31
"""Events of one task: Airflow's server records all of them in the one request with which the task ends."""


def raw_input(kind: str) -> Asset:
    """Return the asset that days of the domain are built from: archives, nodes, services."""
    return Asset(name=f"{kind}_raw", uri=f"permalake://raw/{kind}", group="permalake")


def published_day(kind: str) -> Asset:
    """Return the asset that changes whenever days of the domain are published.

    It has an event per day, whose extra says ``network`` and ``date``, and in ``days`` the same as a list: of
    a long range each event stands for several days, of which ``date`` is the first.
    """
    return Asset(name=f"{kind}_published_day", uri=f"permalake://published/{kind}", group="permalake")


def published_days(kind: str) -> AssetAlias:
    """Return the outlet of publish: an asset has one event per task, an alias as many as the task adds."""
    return AssetAlias(name=f"{kind}_published_days", group="permalake")


def served_day(kind: str) -> Asset:
    """Return the asset that changes whenever a store was given days of the domain.

    The event's extra says ``network``, and in ``days`` how many each store was given.
    """
    return Asset(name=f"{kind}_served_day", uri=f"permalake://served/{kind}", group="permalake")


def of_task(domain: Domain, step: Step) -> dict[str, list[Any]]:
    """Return inlets and outlets of a step's task."""
    if step == domain.steps[0]:
        return {"inlets": [raw_input(domain.name)]}
    if step.name == PUBLISH:
        return {"outlets": [published_days(domain.name)]}
    if step.name == CARRY:
        return {"inlets": [published_day(domain.name)]}
    if step.name == SERVE:
        return {"inlets": [published_day(domain.name)], "outlets": [served_day(domain.name)]}
    return {}


def announce(domain: Domain, step: Step, network: str, result: StepResult, events: Any) -> None:
    """Say in the events of a task's outlets what it did; ``events`` is ``outlet_events`` of its context."""
    if step.name == PUBLISH:
        days = [str(day) for day in result.days or ()]
        size = max(1, ceil(len(days) / MOST_EVENTS))
        for first in range(0, len(days), size):
            extra = {"network": network, "date": days[first], "days": days[first : first + size]}
            events[published_days(domain.name)].add(published_day(domain.name), extra=extra)
    if step.name == SERVE:
        events[served_day(domain.name)].extra = {"network": network, "days": dict(result.served or {})}
