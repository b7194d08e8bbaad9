"""What a step reads and writes, as OpenLineage datasets: raw input → tables of the lake → stores.

Airflow's provider sends them where the standard variables say (``OPENLINEAGE_URL``,
``AIRFLOW__OPENLINEAGE__TRANSPORT``); without one nothing is sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from permalake.config import Settings
from permalake.pipeline.request import WORMHOLE

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage

Named = tuple[str, str]
"""Namespace and name of a dataset, by OpenLineage's naming rules."""


def raw(settings: Settings, network: str) -> list[Named]:
    """The source that a network is built from."""
    section = settings.wormhole if network == WORMHOLE else settings.network(network)
    if section is None:
        return []
    if section.path is not None:
        return [("file", str(section.path))]
    address = urlsplit(section.url or "")
    # The host alone: user, path and query of an address may hold a key.
    return [(f"{address.scheme}://{address.netloc.rpartition('@')[2]}", network)]


def tables(settings: Settings, network: str, names: Iterable[str]) -> list[Named]:
    """Tables of the lake."""
    place = settings.lake.warehouse
    namespace = place if "://" in place else f"file:{place}"
    return [(namespace, f"{network}.{name}") for name in names]


def stores(settings: Settings, network: str, names: Iterable[str]) -> list[Named]:
    """The stores that a network is published into."""
    found = []
    for name in names:
        if name == "cassandra":
            host = next(iter(settings.cassandra.contact_points), "")
            found.append((f"cassandra://{host}:{settings.cassandra.port}", network.replace("-", "_")))
        else:
            bigtable = settings.bigtable
            found.append((f"bigtable://{bigtable.project}", f"{bigtable.instance}.{bigtable.table}"))
    return found


def lineage(inputs: Iterable[Named], outputs: Iterable[Named]) -> OperatorLineage:
    """As the provider takes it."""
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import Dataset

    return OperatorLineage(
        inputs=[Dataset(namespace, name) for namespace, name in inputs],
        outputs=[Dataset(namespace, name) for namespace, name in outputs],
    )
