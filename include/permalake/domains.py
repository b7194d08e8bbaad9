"""The domains that share the lake, and what follows from having all of them at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from permalake.config import Settings
from permalake.contracts.namespaces import LIVE_SUFFIX
from permalake.errors import ConfigError
from permalake.iota.day import IOTA
from permalake.pipeline.domain import Domain
from permalake.wormhole.day import WORMHOLE

if TYPE_CHECKING:
    from permalake.contracts import Table
    from permalake.lake import Reader
    from permalake.stores.batch import Store

DOMAINS = (IOTA, WORMHOLE)
NAMES = tuple(domain.name for domain in DOMAINS)


def named(name: str) -> Domain:
    """Return the domain of that name; :class:`ConfigError` lists the names."""
    for domain in DOMAINS:
        if domain.name == name:
            return domain
    raise ConfigError(f"run {name}: no such DAG; choose one of {', '.join(NAMES)}")


def domain_of(network: str) -> Domain:
    """Return the domain that a lake namespace, or that of a head, belongs to, configured or not."""
    network = network.removesuffix(LIVE_SUFFIX)
    fixed = (domain for domain in DOMAINS if domain.namespace == network)
    return next(fixed, None) or next(domain for domain in DOMAINS if domain.namespace is None)


def table_of(network: str, name: str) -> Table | None:
    """Return the contract of a network's table; None where this version has no such table."""
    return domain_of(network).tables.get(name)


def stores_of(settings: Settings, network: str) -> tuple[Store, ...]:
    """Return the configured stores that a network is published into."""
    return domain_of(network).configured_stores(settings)


def open_reader(settings: Settings) -> Reader:
    """Open the published lake with the tables of every domain."""
    from permalake.lake import Reader
    from permalake.lake.identity import open_database

    return Reader(settings, open_database(settings), domain_of)
