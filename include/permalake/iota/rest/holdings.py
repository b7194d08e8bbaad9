"""What an address holds and moved, by the rule of the SQL view ``account_statement``.

An output belongs to the address that it was created for (address unlock condition or state controller), until
it is consumed, whoever unlocks it. One that was consumed and whose creation the lake does not hold was held
before the lake's first milestone. So a balance is at least what is told, since that milestone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from permalake.iota.rest import ledger
from permalake.web.state import RequestLake

OWNERS = {
    f"{kind}_outputs": "state_controller" if kind == "alias" else "address" for kind in ledger.OWNED_KINDS
}
"""Tables of outputs, and the column of whom an output is created for."""
_UNLOCKED_BY_OTHERS = dict.fromkeys(OWNERS, "false") | {
    "basic_outputs": "expiration_time IS NOT NULL",
    "nft_outputs": "expiration_time IS NOT NULL",
    "alias_outputs": "true",
}
"""By table: whether another address than an output's own may consume it, as SQL."""
_OF_OTHERS: tuple[Mapping[str, str], ...] = (
    {"basic_outputs": "expiration_return_address", "nft_outputs": "expiration_return_address"},
    {"alias_outputs": "governor"},
)
"""Tables and columns of outputs that an address may consume although they are another one's."""
_CONSUMED = "output_id, kind, amount, milestone_index, ms_timestamp, transaction_id, message_id"


@dataclass(frozen=True)
class Holdings:
    """Outputs of an address up to the ledger index, as rows.

    Attributes:
        created: Those created for it.
        spent: Who consumed them, by output id.
        before: Those consumed by it that the lake does not hold, as rows of ``consumed_outputs``.
    """

    created: list[ledger.Row]
    spent: dict[str, ledger.Row]
    before: list[ledger.Row]

    @property
    def amount(self) -> int:
        """Base tokens in unspent outputs."""
        return sum(row["amount"] for row in self.created if row["output_id"] not in self.spent)

    @property
    def opening(self) -> int:
        """Base tokens that it must have held before the lake's first milestone."""
        return sum(row["amount"] for row in self.before)

    @property
    def is_seen(self) -> bool:
        """Whether the lake knows the address at all."""
        return bool(self.created or self.before)

    def moves(self) -> list[dict[str, Any]]:
        """Return what it gained or lost by milestone and transaction, newest first.

        ``message_id`` is None where a receipt migrated funds, ``balance`` that after the milestone.
        """
        balance, moves = self.opening, []
        for _, of_milestone in groupby(sorted(self._changes(), key=_place), key=_place):
            parts: dict[str, dict[str, Any]] = {}
            for transaction, change, row in of_milestone:
                move = parts.setdefault(transaction, _move(transaction, row))
                move["change"] += change
                move["received" if change >= 0 else "spent"] += 1
            balance += sum(move["change"] for move in parts.values())
            moves.append([parts[name] | {"balance": balance} for name in sorted(parts)])
        return [move for of_milestone in reversed(moves) for move in of_milestone]

    def _changes(self) -> Iterator[tuple[str, int, ledger.Row]]:
        for row in self.created:
            yield row["output_id"][:64], row["amount"], row
            if (spender := self.spent.get(row["output_id"])) is not None:
                yield spender["transaction_id"], -row["amount"], spender
        for row in self.before:
            yield row["transaction_id"], -row["amount"], row


def _place(change: tuple[str, int, ledger.Row]) -> int:
    index: int = change[2]["milestone_index"]
    return index


def _move(transaction: str, row: ledger.Row) -> dict[str, Any]:
    return {
        "milestone_index": row["milestone_index"],
        "time": row["ms_timestamp"],
        "transaction_id": transaction,
        "message_id": row["message_id"],
        "change": 0,
        "received": 0,
        "spent": 0,
    }


def holdings(lake: RequestLake, address: str) -> Holdings:
    """Return the outputs of an address (bech32) at the ledger index."""
    bound = {"address": address, "last": ledger.ledger_index(lake)}
    created = _rows(lake, _created, OWNERS, bound)
    ids = {row["output_id"] for row in created}
    consumed = [
        row
        for row in _rows(lake, lambda _: _CONSUMED, {"consumed_outputs": "address"}, bound)
        if row["kind"] != "treasury"
    ]
    spent = {row["output_id"]: row for row in consumed if row["output_id"] in ids}
    # Another one may unlock these: by an expiration, or as governor of an alias.
    others = [row["output_id"] for row in created if row["has_others"] and row["output_id"] not in spent]
    spent |= ledger.spent(lake, others)
    of_others = {
        row["output_id"] for way in _OF_OTHERS for row in _rows(lake, lambda _: "output_id", way, bound)
    }
    before = [row for row in consumed if row["output_id"] not in ids | of_others]
    return Holdings(created, spent, before)


def _rows(
    lake: RequestLake, columns: Callable[[str], str], owners: Mapping[str, str], bound: dict[str, Any]
) -> list[ledger.Row]:
    """Return rows of an address up to a milestone; ``owners``: the column with the address, by table."""
    scans = {table: lake.find(table, owner, bound["address"]) for table, owner in owners.items()}
    used = {table: scan for table, scan in scans.items() if not scan.is_empty}
    if not used:
        return []
    parts = (
        f"SELECT {columns(table)} FROM {table} "  # noqa: S608
        f"WHERE {owners[table]} = $address AND milestone_index <= $last"
        for table in used
    )
    return lake.rows(" UNION ALL ".join(parts), bound, **used)


def _created(table: str) -> str:
    has_others = f"{_UNLOCKED_BY_OTHERS[table]} AS has_others"
    return f"output_id, amount, milestone_index, ms_timestamp, message_id, {has_others}"


def since(lake: RequestLake) -> int:
    """Return the first milestone that the lake holds: what lies before is not known."""
    return ledger.ranges(lake)[0][0] if ledger.ranges(lake) else 0
