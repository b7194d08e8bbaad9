"""Questions to the RPC of a chain, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Question:
    """``kind`` and ``subject`` as in ``chain_answers``. Of a message's sender: the transaction as reported,
    and the time of the message (unix seconds)."""

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
class Answer:
    """What was told; else why there is nothing to tell (``reason``), or what kept the question from being
    answered at all (``fault``), each on one line."""

    address: str | None = None
    symbol: str | None = None
    name: str | None = None
    decimals: int | None = None
    reason: str | None = None
    fault: str | None = None


class ChainRpc(Protocol):
    """The RPC of a chain."""

    def answers(self, kind: str, questions: Sequence[Question]) -> list[Answer]:
        """An answer to every question of one kind, in order."""
        ...

    def close(self) -> None:
        """Let go of its connections."""
        ...
