"""Questions to the RPC of a chain and its answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

NEWEST_VERSION = 1
"""Newest version of Solana's transactions that is known here; a node withholds newer ones."""
WITHHELD = "JSON-RPC error -32015"
"""How such a node answers."""
TOO_NEW = f"the transaction is of a version after {NEWEST_VERSION}"
"""The reason for no sender then. Permalake asks again once it knows a later version than the reason names."""


@dataclass(frozen=True)
class Question:
    """A question, with ``kind`` and ``subject`` as in ``chain_answers``.

    A question for a message's sender also has the transaction as reported and the time of the message (unix
    seconds).
    """

    kind: str
    subject: str
    tx_id: str | None = None
    at: int = 0

    @property
    def message(self) -> tuple[str, int]:
        """Emitter (hex) and sequence of the message that a row key names."""
        _, emitter, sequence = self.subject.split(":")
        return emitter, int(sequence)


@dataclass(frozen=True)
class ChainAnswer:
    """The answer of a chain; else the ``reason`` for none, or the ``fault`` that left the question open.

    ``reason`` and ``fault`` are one line each. ``provisional``: a later block may tell something else,
    because the answer was not read at a finalized block, or the node withheld a part of it.
    """

    address: str | None = None
    symbol: str | None = None
    name: str | None = None
    decimals: int | None = None
    reason: str | None = None
    fault: str | None = None
    provisional: bool = False


class Node(Protocol):
    """The node of a chain."""

    @property
    def is_down(self) -> bool:
        """Whether the node is left alone at present."""
        ...


class OpenNode(Node, Protocol):
    """A node with connections to it."""

    def close(self) -> None:
        """Close all connections."""
        ...


class ChainRpc(OpenNode, Protocol):
    """The RPC of a chain."""

    def answers(self, kind: str, questions: Sequence[Question]) -> list[ChainAnswer]:
        """Return an answer to every question of one kind, in order."""
        ...


N = TypeVar("N", bound=OpenNode)


class NodeRpc(Generic[N]):
    """What every RPC has of its node."""

    def __init__(self, node: N) -> None:
        self._node = node

    @property
    def is_down(self) -> bool:
        """Whether the node is left alone at present."""
        return self._node.is_down

    def close(self) -> None:
        """Close all connections."""
        self._node.close()
