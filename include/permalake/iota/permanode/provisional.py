"""The messages above a live head that Cassandra has: noted in the catalog before their rows are written.

So whoever comes later, the next batch or a day, finds every row that must go, whatever was killed in between.
Only a holder of the store's lease may write or clear.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import Connection, delete, insert, select

from permalake.config import Settings
from permalake.contracts.namespaces import live_namespace
from permalake.iota.contracts.unreferenced import UNREFERENCED_MESSAGES
from permalake.iota.permanode.chrysalis_schema import keyspace_of
from permalake.iota.permanode.provisional_rows import (
    Seen,
    is_by_range,
    keys_of,
    provisional_rows,
    values_of,
)
from permalake.lake.catalog import locations
from permalake.lake.database import Database
from permalake.lake.published import dataset
from permalake.lake.state import LIVE, clock, moment, provisional, stamp
from permalake.stores import cassandra

if TYPE_CHECKING:
    from cassandra.cluster import Session
    from sqlalchemy import ColumnElement

_EARLIER = timedelta(hours=1)
_AT_ONCE = 500
T = TypeVar("T")


def head_micros(database: Database) -> int:
    """Return the write time of a head's rows: an hour ago, by the clock that all machines share.

    The rows of days are written with their machine's clock and win, even if that one goes wrong by minutes.
    """
    with database.read() as connection:
        now = moment(clock(connection))
    return int((now - _EARLIER).timestamp() * 1_000_000)


class ProvisionalMessages:
    """The messages of one network that no milestone references yet, in Cassandra."""

    def __init__(self, settings: Settings, database: Database, network: str) -> None:
        self._database = database
        self._name = network
        self._keyspace = keyspace_of(network)
        self._network = settings.network(network)
        self._ttl = settings.live.provisional_seconds

    def ids(self) -> set[str]:
        """Return the ids of the messages whose rows may be in Cassandra."""
        with self._database.read() as connection:
            mine = select(provisional.c.message_id).where(provisional.c.network == self._name)
            return set(connection.execute(mine).scalars())

    def ids_above(self) -> set[str]:
        """Return the ids of the messages that the head has above its last milestone."""
        with self._database.read() as connection:
            at = locations(connection, LIVE, live_namespace(self._name)).get(UNREFERENCED_MESSAGES.name)
        ids = dataset(UNREFERENCED_MESSAGES, at).to_table(["message_id"])
        return set(ids["message_id"].to_pylist())

    def write(self, connected: Session, messages: Mapping[str, Seen], micros: int) -> None:
        """Write the rows of messages, by id."""
        rows = [
            {
                "network": self._name,
                "message_id": message_id,
                "estimate": seen.estimate,
                "seen_at": stamp(seen.seen_at),
                "message": seen.message,
            }
            for message_id, seen in messages.items()
        ]
        with self._database.write() as connection:
            for some in _parts(rows):
                connection.execute(insert(provisional), some)
        self._insert(connected, messages, micros)

    def write_again(self, connected: Session, message_ids: Collection[str], micros: int) -> None:
        """Write the rows of messages that are noted and that the head has: so no published day has them."""
        for ids in _parts(sorted(message_ids)):
            with self._database.read() as connection:
                messages = dict(self._messages(connection, ids))
            self._insert(connected, messages, micros)

    def _insert(self, connected: Session, messages: Mapping[str, Seen], micros: int) -> None:
        for table, made in provisional_rows(messages, self._network.protocol, self._network.bech32_hrp):
            cassandra.insert(
                connected, self._keyspace, table, values_of(table, made), micros=micros, ttl=self._ttl
            )

    def clear(
        self,
        connected: Session,
        message_ids: Collection[str],
        micros: int,
        overwritten: Collection[str] = frozenset(),
    ) -> None:
        """Delete the rows of messages.

        Of ``overwritten`` ones the next write replaces what has the same key; the rest of them goes too.
        """
        for ids in _parts(sorted(message_ids)):
            with self._database.read() as connection:
                messages = dict(self._messages(connection, ids))
            for table, made in provisional_rows(messages, self._network.protocol, self._network.bech32_hrp):
                gone = [row for row in made if is_by_range(table) or row["message_id"] not in overwritten]
                cassandra.erase(connected, self._keyspace, table, keys_of(table, gone), micros)
            with self._database.write() as connection:
                connection.execute(delete(provisional).where(*self._these(ids)))

    def _messages(self, connection: Connection, ids: Collection[str]) -> Iterator[tuple[str, Seen]]:
        for row in connection.execute(select(provisional).where(*self._these(ids))):
            yield row.message_id, Seen(row.message, row.estimate, moment(row.seen_at))

    def _these(self, ids: Collection[str]) -> tuple[ColumnElement[bool], ...]:
        return provisional.c.network == self._name, provisional.c.message_id.in_(ids)


def _parts(rows: list[T]) -> Iterator[list[T]]:
    return (rows[first : first + _AT_ONCE] for first in range(0, len(rows), _AT_ONCE))
