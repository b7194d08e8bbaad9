"""The contents of a namespace. The domains give them to the lake, which knows no domain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from permalake.contracts.schema import Table
from permalake.contracts.views import LakeView


class Namespace(Protocol):
    """Tables and views of a namespace, by their contracts."""

    @property
    def tables(self) -> Mapping[str, Table]:
        """Contracts by table name."""

    @property
    def head_tables(self) -> Mapping[str, Table]:
        """Contracts of the tables that a head has and days have not, by table name."""

    @property
    def views(self) -> tuple[LakeView, ...]:
        """Views beside the tables."""


LIVE_SUFFIX = "_live"


def live_namespace(network: str) -> str:
    """Return the namespace of a network's head."""
    return network + LIVE_SUFFIX


def is_live(namespace: str) -> bool:
    """Return whether a namespace is that of a head."""
    return namespace.endswith(LIVE_SUFFIX)


Namespaces = Callable[[str], Namespace]
"""The contracts of the namespace of that name."""


def contracts_in(namespaces: Namespaces, namespace: str) -> Mapping[str, Table]:
    """Return the contracts of the tables that a namespace may have, by name; of a head its own ones too."""
    owner = namespaces(namespace)
    return {**owner.tables, **owner.head_tables} if is_live(namespace) else owner.tables
