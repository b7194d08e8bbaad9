"""Which messages a request asks for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime

from permalake.wormhole.rest.rows import Parameters

_PUBLICATION = "message_publication"
FIRST_REAL_TIME = datetime(2020, 8, 1, tzinfo=UTC)
"""Bodies with an earlier time stand at another date (SPEC section 5)."""


@dataclass(frozen=True)
class EventKey:
    """A message by row key, with its partition and its place in the order of time."""

    row_key: str
    date: date
    timestamp: datetime


@dataclass(frozen=True)
class EventFilter:
    """Which messages to list; None or an empty tuple asks for all."""

    start: date | None = None
    end: date | None = None
    chain: int | None = None
    emitter: str | None = None
    target_chain: int | None = None
    token: tuple[int, str] | None = None
    transactions: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    paid_by: tuple[str, ...] = ()
    """Transactions on the target chain that redeemed a transfer."""
    recipients: tuple[str, ...] = ()
    """Accounts behind an application's contract, to which it passes a transfer on."""
    app_id: str | None = None
    is_alone: bool = False
    """Whether a message may have no other application than ``app_id``."""
    since: datetime | None = None
    until: datetime | None = None
    """First and last time, in UTC: days are UTC's."""

    @property
    def is_timed(self) -> bool:
        """Whether the list is one of a span of time."""
        return any(bound is not None for bound in (self.start, self.end, self.since, self.until))

    @property
    def first_day(self) -> date | None:
        """First partition that can match."""
        # A body's time shows its day only from then on.
        timed = self.since.date() if self.since and self.since >= FIRST_REAL_TIME else None
        return max(filter(None, (self.start, timed)), default=None)

    @property
    def lookups(self) -> list[list[tuple[str, str, str]]]:
        """Values in the id index, one of each list at least: table, column and value."""
        lookups = []
        if self.transactions:
            lookups.append(
                [(_PUBLICATION, "initiating_tx_id", transaction) for transaction in self.transactions]
            )
        if self.addresses:
            sides = ("sender_address", "receiver_address")
            lookups.append([("chain_details", side, address) for side in sides for address in self.addresses])
        lookups += [
            [(table, column, value) for value in values]
            for table, column, values in self._told_beside()
            if values
        ]
        if self.emitter is not None:
            lookups.append([(_PUBLICATION, "emitter_address", self.emitter)])
        return lookups

    def conditions(self, bound: Parameters) -> list[str]:
        """Return conditions on publication ``p``, transfer ``t``, chain details ``c``, application ``a``."""
        single = {
            "p.date >=": self.start,
            "p.date <=": self.end,
            "p.timestamp >=": self.since,
            "p.timestamp <=": self.until,
            "p.emitter_chain =": self.chain,
            "p.emitter_address =": self.emitter,
            "t.target_chain =": self.target_chain,
            "t.origin_chain =": self.token[0] if self.token else None,
            "t.origin_address =": self.token[1] if self.token else None,
        }
        conditions = [f"{text} {bound.add(value)}" for text, value in single.items() if value is not None]
        if self.transactions:
            conditions.append(f"p.initiating_tx_id IN ({bound.add_all(self.transactions)})")
        if self.addresses:
            names = bound.add_all(self.addresses)
            conditions.append(f"(c.sender_address IN ({names}) OR c.receiver_address IN ({names}))")
        for table, column, values in self._told_beside():
            if values:
                names = bound.add_all(values)
                same_message = f"b.row_key = p.row_key AND b.date = p.date AND b.{column} IN ({names})"
                conditions.append(f"EXISTS (FROM {table} AS b WHERE {same_message})")
        if self.app_id is not None:
            name = bound.add(self.app_id)
            carried = "a.carrier_app_id IS NULL AND" if self.is_alone else f"a.carrier_app_id = {name} OR"
            conditions.append(f"({carried} a.app_id = {name})")
        return conditions

    def joins(self) -> dict[str, str]:
        """Return the tables beside message_publication that the conditions need, by alias."""
        needed = {"t": self.target_chain is not None or self.token is not None, "c": bool(self.addresses)}
        needed["a"] = self.app_id is not None
        tables = {"t": "token_transfer_payload", "c": "chain_details", "a": "application_messages"}
        return {alias: table for alias, table in tables.items() if needed[alias]}

    def beside(self) -> tuple[str, ...]:
        """Return the tables that conditions ask by a question of their own: they may have several rows."""
        return tuple(table for table, _, values in self._told_beside() if values)

    def _told_beside(self) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
        return (
            ("redemptions", "target_tx_id", self.paid_by),
            ("application_transfer_details", "recipient_native_address", self.recipients),
        )
