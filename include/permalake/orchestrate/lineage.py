"""What a step reads and writes, as OpenLineage datasets: raw input → tables of the lake → stores.

Airflow's provider sends them where the standard variables say (``OPENLINEAGE_URL``,
``AIRFLOW__OPENLINEAGE__TRANSPORT``); without one nothing is sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from permalake.config import Settings
from permalake.contracts.steps import Dataset

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage


def tables(settings: Settings, network: str, names: Iterable[str]) -> list[Dataset]:
    """Return tables of the lake as datasets."""
    place = settings.lake.warehouse
    namespace = place if "://" in place else f"file:{place}"
    return [(namespace, f"{network}.{name}") for name in names]


def lineage(inputs: Iterable[Dataset], outputs: Iterable[Dataset]) -> OperatorLineage[Any, Any]:
    """Return inputs and outputs in the form that Airflow's provider takes."""
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import Dataset

    return OperatorLineage(
        inputs=[Dataset(namespace, name) for namespace, name in inputs],
        outputs=[Dataset(namespace, name) for namespace, name in outputs],
    )
