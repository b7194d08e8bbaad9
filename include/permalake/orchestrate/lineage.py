"""The inputs and outputs of a step, as OpenLineage datasets: raw input → tables of the lake → stores.

Airflow's provider sends them where the standard variables say (``OPENLINEAGE_URL``,
``AIRFLOW__OPENLINEAGE__TRANSPORT``); without one nothing is sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from permalake.config import Settings
from permalake.contracts.steps import CARRY, SERVE, Dataset, Step, StepResult

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage

    from permalake.pipeline.workspace import Workspace

Flow = tuple[list[Dataset], list[Dataset]]


def tables(settings: Settings, network: str, names: Iterable[str]) -> list[Dataset]:
    """Return tables of the lake as datasets."""
    place = settings.lake.warehouse
    namespace = place if "://" in place else f"file:{place}"
    return [(namespace, f"{network}.{name}") for name in names]


def flow(work: Workspace, step: Step, result: StepResult) -> Flow:
    """Return what a step read and what it wrote."""
    settings, domain = work.settings, work.domain
    filled = tables(settings, work.network, [name for name, count in result.rows.items() if count])
    if step == domain.steps[0]:
        source = work.inputs.dataset
        return [source] if source else [], filled
    if step.name == CARRY:
        built = [name for name, table in domain.tables.items() if table.commit == "day"]
        return tables(settings, work.network, built), tables(settings, work.network, result.rows)
    if step.name == SERVE:
        stores = [store for store in domain.stores if store.name in (result.served or {})]
        written = [store.dataset(settings, work.network) for store in stores]
        return tables(settings, work.network, domain.tables), written
    return filled, filled if step.writes or step.job is None else []


def lineage(inputs: Iterable[Dataset], outputs: Iterable[Dataset]) -> OperatorLineage[Any, Any]:
    """Return inputs and outputs in the form that Airflow's provider takes."""
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import Dataset

    return OperatorLineage(
        inputs=[Dataset(namespace, name) for namespace, name in inputs],
        outputs=[Dataset(namespace, name) for namespace, name in outputs],
    )
