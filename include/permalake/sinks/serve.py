"""Publishing into the stores: whatever the lake has published and a store does not have yet."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from permalake.config import Settings
from permalake.contracts import wormhole
from permalake.errors import PermalakeError
from permalake.lake import leases
from permalake.lake.catalog import locations
from permalake.lake.state import PUBLISHED, Database
from permalake.sinks import bigtable, cassandra, served
from permalake.sinks.served import DueDay, State

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Days that are written together: enough to share the cost of a pass, few enough to lose little when killed.
_DAYS_AT_ONCE = 31
_EVER = (date(1, 1, 1), date(9999, 12, 31))


@dataclass(frozen=True)
class Batch:
    """Days that are written in one go: ``state`` is the lake as published, ``micros`` the write time."""

    network: str
    days: list[DueDay]
    state: State
    micros: int

    @property
    def dates(self) -> list[date]:
        """The days."""
        return [one.day for one in self.days]

    def before(self) -> list[tuple[State, list[date]]]:
        """Other states of the lake whose rows may be in the store, with the days concerned."""
        found: list[tuple[State, list[date]]] = []
        for one in self.days:
            for state in one.states:
                if state == self.state:  # the same rows: a publish that was cut off
                    continue
                known = next((dates for other, dates in found if other == state), None)
                if known is None:
                    found.append((state, [one.day]))
                else:
                    known.append(one.day)
        return found


def stores_of(settings: Settings, network: str) -> list[str]:
    """Stores into which a network is published: those that are configured."""
    if network == wormhole.NAMESPACE:
        return ["bigtable"] if bigtable.configured(settings.bigtable) else []
    return ["cassandra"] if cassandra.configured(settings.cassandra) else []


def serve(spark: SparkSession, settings: Settings, network: str) -> dict[str, list[date]]:
    """Write every due day of a network into its stores; returns the days written, by store.

    A failure leaves the days due, notes the reason, and raises :class:`PermalakeError`; a later run catches
    up. One run at a time per network and store.
    """
    from permalake.sinks.bigtable_days import BigtableDays
    from permalake.sinks.cassandra_days import CassandraDays

    database = Database(settings.lake.catalog_uri)
    done = {}
    for store in stores_of(settings, network):
        target = (BigtableDays if store == "bigtable" else CassandraDays)(spark, settings, network)
        with _alone(database, f"{network}@{store}"):
            done[store] = _catch_up(database, network, store, target.ensure, target.write)
    return done


def _catch_up(
    database: Database,
    network: str,
    store: str,
    ensure: Callable[[], bool],
    write: Callable[[Batch], None],
) -> list[date]:
    with database.read() as connection:
        waiting = served.due(connection, network, store)
    try:
        if ensure():
            with database.write() as connection:
                served.forget(connection, network, store)
        written: list[date] = []
        while batch := _next_batch(database, network, store):
            write(batch)
            with database.write() as connection:
                served.finish(connection, network, store, batch.days, batch.state)
            written += batch.dates
    except Exception as error:
        with database.write() as connection:
            served.fail(connection, network, store, waiting, str(error).splitlines()[0])
        if isinstance(error, PermalakeError):
            raise
        first = " ".join(str(error).splitlines()[0].split())
        raise PermalakeError(f"{network}: {store} took not all ({first}); run it again") from error
    return written


def _next_batch(database: Database, network: str, store: str) -> Batch | None:
    """The days that have waited longest, with the state of all tables in one read."""
    with database.write() as connection:
        days = served.due(connection, network, store)[:_DAYS_AT_ONCE]
        if not days:
            return None
        state = locations(connection, PUBLISHED, network)
        return Batch(network, days, state, served.begin(connection, network, store, days, state))


@contextmanager
def _alone(database: Database, what: str) -> Iterator[None]:
    run_id = f"serve-{uuid.uuid4().hex[:12]}"
    leases.take(database, what, *_EVER, run_id=run_id)
    beat = leases.Heartbeat(database, what, run_id)
    try:
        yield
    finally:
        beat.stop()
        leases.release(database, run_id)
