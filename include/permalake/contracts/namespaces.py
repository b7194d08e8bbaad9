"""What a namespace of the lake holds. The lake is given this by the domains and knows none of them."""

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
    def views(self) -> tuple[LakeView, ...]:
        """Views beside the tables."""


Namespaces = Callable[[str], Namespace]
"""The contracts of the namespace of that name."""
