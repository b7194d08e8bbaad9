"""What routes read by id or key of one network's ledger, whatever backend answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from permalake.contracts.rows import Row
from permalake.iota.contracts.columns import MAX_U32
from permalake.web.paging import ListPage

KINDS = ("basic", "alias", "foundry", "nft", "legacy", "treasury")
OWNED_KINDS = KINDS[:5]
"""Kinds of output that transactions create."""


@dataclass(frozen=True)
class LedgerList:
    """A list of a table's rows with one value, by milestone and ``tie``.

    Attributes:
        table: Table of the lake.
        column: One of its ``lookups``.
        value: The wanted value.
        tie: Column that orders rows of a milestone.
        newest: Whether the newest comes first; the order is the exact reverse of the other.
        columns: Columns of a row beside ``milestone_index`` and ``tie``.
        equal: Further columns, among ``columns``, with the values that they must have.
        last: The newest milestone whose rows count.
    """

    table: str
    column: str
    value: str
    tie: str
    newest: bool
    columns: tuple[str, ...]
    equal: Mapping[str, Any] = field(default_factory=dict)
    last: int = MAX_U32

    def place(self, row: Row) -> tuple[int, str]:
        """Return a row's position in the list."""
        return row["milestone_index"], row[self.tie]

    def behind(self, row: Row, page: ListPage) -> bool:
        """Return whether a row lies behind the position where a page begins."""
        if page.after is None:
            return True
        at, last = page.after
        return self.place(row) < (at, last) if self.newest else self.place(row) > (at, last)


class LedgerReader(Protocol):
    """Reads one published state of one network. Ids are as the lake has them: bare, lower-case.

    A row that is not published raises :class:`~permalake.web.problems.ProblemError` (404).
    """

    def message(self, message_id: str) -> Row:
        """Return message_id, message, milestone_index, inclusion_state and conflict_reason of a message."""

    def included_message(self, transaction_id: str) -> Row:
        """Return the message with which a transaction was included."""

    def output(self, output_id: str, kinds: Iterable[str]) -> Row:
        """Return output_id, kind, amount, data, milestone_index and ms_timestamp of an output.

        ``message_id`` is there where the backend has it beside the output.
        """

    def milestone(self, index: int) -> Row:
        """Return milestone_index, message_id, timestamp and payload of a milestone."""

    def listed(self, question: LedgerList, page: ListPage) -> list[Row]:
        """Return one page of a list, and one row more if there is one."""
