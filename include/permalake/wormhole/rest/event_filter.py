"""Which messages a request asks for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import NamedTuple

from permalake.wormhole.codec.vaa import GENESIS_TIME
from permalake.wormhole.rest.rows import Parameters

_PUBLICATION = "message_publication"
_MOVED_DETAILS = "application_transfer_details"
TARGET_TABLES = ("token_transfer_payload", "nft_transfer_payload", "application_transfers")
"""Tables that name the chain to which a message moves something, as ``target_chain``."""


@dataclass(frozen=True)
class EventKey:
    """A message by row key, with its partition and its place in the order of time."""

    row_key: str
    date: date
    timestamp: datetime


class _Place(NamedTuple):
    """Columns of a table that hold an id, in one of its spellings."""

    table: str
    columns: tuple[str, ...]
    values: tuple[str, ...]

    def condition(self, bound: Parameters) -> str:
        """Return the condition that the message ``p`` has one of the values there."""
        names = bound.add_all(self.values)
        if self.table == _PUBLICATION:
            return " OR ".join(f"p.{column} IN ({names})" for column in self.columns)
        return _of_message(self.table, " OR ".join(f"b.{column} IN ({names})" for column in self.columns))


@dataclass(frozen=True)
class EventFilter:
    """Which messages to list; None or an empty tuple asks for all."""

    start: date | None = None
    end: date | None = None
    chain: int | None = None
    emitter: str | None = None
    target_chain: int | None = None
    """Where a message goes; a transfer through Gateway goes to Wormchain and to a chain behind it."""
    token: tuple[int, str] | None = None
    transactions: tuple[str, ...] = ()
    paid_by: tuple[str, ...] = ()
    """Transactions on the target chain that redeemed a transfer; beside ``transactions``, either counts."""
    addresses: tuple[str, ...] = ()
    """Accounts that sent or received, also behind an application's contract."""
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
        timed = self.since.date() if self.since and self.since >= GENESIS_TIME else None
        return max(filter(None, (self.start, timed)), default=None)

    @property
    def lookups(self) -> list[list[tuple[str, str, str]]]:
        """Values in the id index, one of each list at least: table, column and value."""
        lookups = [
            [
                (place.table, column, value)
                for place in places
                for column in place.columns
                for value in place.values
            ]
            for places in self._places()
        ]
        if self.emitter is not None:
            lookups.append([(_PUBLICATION, "emitter_address", self.emitter)])
        return lookups

    def conditions(self, bound: Parameters) -> list[str]:
        """Return conditions on publication ``p``, transfer ``t``, application ``a``."""
        single = {
            "p.date >=": self.start,
            "p.date <=": self.end,
            "p.timestamp >=": self.since,
            "p.timestamp <=": self.until,
            "p.emitter_chain =": self.chain,
            "p.emitter_address =": self.emitter,
            "t.origin_chain =": self.token[0] if self.token else None,
            "t.origin_address =": self.token[1] if self.token else None,
        }
        conditions = [f"{text} {bound.add(value)}" for text, value in single.items() if value is not None]
        for places in self._places():
            conditions.append(f"({' OR '.join(place.condition(bound) for place in places)})")
        if self.app_id is not None:
            name = bound.add(self.app_id)
            carried = "a.carrier_app_id IS NULL AND" if self.is_alone else f"a.carrier_app_id = {name} OR"
            conditions.append(f"({carried} a.app_id = {name})")
        if self.target_chain is not None:
            name = bound.add(self.target_chain)
            sent = (_of_message(table, f"b.target_chain = {name}") for table in TARGET_TABLES)
            conditions.append(f"({' OR '.join(sent)})")
        return conditions

    def joins(self) -> dict[str, str]:
        """Return the tables beside message_publication that the conditions need, by alias."""
        joins = {"t": "token_transfer_payload"} if self.token is not None else {}
        return joins | ({"a": "application_messages"} if self.app_id is not None else {})

    def beside(self) -> tuple[str, ...]:
        """Return the tables that conditions ask by a question of their own: they may have several rows."""
        named = (place.table for places in self._places() for place in places if place.table != _PUBLICATION)
        targets = TARGET_TABLES if self.target_chain is not None else ()
        return tuple(dict.fromkeys((*named, *targets)))

    def _places(self) -> list[list[_Place]]:
        """Return where ids of the filter stand; of each list a message has one at least."""
        recipient = ("recipient_native_address",)
        alternatives = (
            (
                _Place(_PUBLICATION, ("initiating_tx_id",), self.transactions),
                _Place("redemptions", ("target_tx_id",), self.paid_by),
            ),
            (
                _Place("chain_details", ("sender_address", "receiver_address"), self.addresses),
                _Place(_MOVED_DETAILS, recipient, self.addresses),
            ),
            (_Place(_MOVED_DETAILS, recipient, self.recipients),),
        )
        asked = ([place for place in places if place.values] for places in alternatives)
        return [places for places in asked if places]


def _of_message(table: str, condition: str) -> str:
    """Return the condition that the message ``p`` has a row ``b`` in a table."""
    return f"EXISTS (FROM {table} AS b WHERE b.row_key = p.row_key AND b.date = p.date AND ({condition}))"
