"""Publishing into the stores: whatever the lake has published and a store does not have yet."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import date
from typing import TYPE_CHECKING

from permalake.config import Settings
from permalake.errors import ConfigError, PermalakeError
from permalake.lake import leases
from permalake.lake.catalog import locations
from permalake.lake.database import Database
from permalake.lake.fixed_settings import fix_settings
from permalake.lake.identity import open_database
from permalake.lake.state import PUBLISHED
from permalake.stores import served
from permalake.stores.batch import Store, StoreBatch, StoreWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


LOG = logging.getLogger(__name__)
# Days that are written together: enough to share the cost of a pass, few enough to lose little when killed.
_DAYS_AT_ONCE = 31
# Another run writes the same store: what it writes is mostly what this one would have written.
_WAIT_SECONDS = 150
# A store that goes away while it is written is waited for: long enough to start it again by hand.
_TRIES = 5
_PATIENCE_SECONDS = 600.0
_PAUSE_SECONDS = 5.0


def waiting(settings: Settings, network: str, stores: Sequence[Store]) -> dict[str, list[date]]:
    """Return the published days that a store does not have as they are published now, by store.

    Stores that have them all are left out.
    """
    with open_database(settings).read() as connection:
        pending = {
            store.name: [due_day.day for due_day in served.due(connection, network, store.name)]
            for store in stores
        }
    return {store: due for store, due in pending.items() if due}


def again(settings: Settings, network: str, stores: Sequence[Store], start: date, end: date) -> None:
    """Make days start..end (inclusive) due once more."""
    with open_database(settings).write() as connection:
        for store in stores:
            served.forget(connection, network, store.name, start, end)


def prepare(settings: Settings, network: str, stores: Sequence[Store]) -> None:
    """Check that every store answers and has its tables; what has lost them is due whole.

    Raises:
        PermalakeError: if a store does not answer; it says which, as ``permalake status`` does from then
            on.
    """
    database = open_database(settings)
    for store in stores:
        with _alone(database, network, store.name), _noted(database, network, store.name):
            ensure(database, settings, network, store)


def serve(
    spark: SparkSession, settings: Settings, network: str, stores: Sequence[Store]
) -> dict[str, list[date]]:
    """Write every due day of a network into its stores; returns the days written, by store.

    A failure leaves the days due, notes the reason, and raises :class:`PermalakeError`; a later run catches
    up. One run at a time per network and store.
    """
    database = open_database(settings)
    done: dict[str, list[date]] = {}
    for store in stores:
        with database.write() as connection:
            fix_settings(connection, settings, network, store.name)
        target = store.writer(spark, settings, network)
        with _alone(database, network, store.name), _noted(database, network, store.name):
            ensure(database, settings, network, store)
            done[store.name] = _catch_up(database, settings, network, store, target)
    return done


def _catch_up(
    database: Database, settings: Settings, network: str, store: Store, target: StoreWriter
) -> list[date]:
    """Write batch after batch; one that the store did not take whole is written again once it answers."""
    written: list[date] = []
    failures, recovered = 0, False
    while True:
        try:
            if not recovered:
                with database.read() as connection:
                    cut, micros = served.begun(connection, network, store.name)
                target.recover(cut, micros)
                recovered = True
            batch = _next_batch(database, network, store.name)
            if batch is None:
                return written
            target.write(batch)
        except ConfigError:
            raise
        except Exception as error:
            failures += 1
            if failures == _TRIES:
                raise
            LOG.warning("%s: %s took not all, trying again: %s", network, store.name, _first_line(error))
            time.sleep(_PAUSE_SECONDS * 2 ** (failures - 1))
            _wait_for(database, settings, network, store)
            recovered = False
            continue
        with database.write() as connection:
            served.finish(connection, network, store.name, batch.days, batch.state)
        written += batch.dates
        failures = 0


def _wait_for(database: Database, settings: Settings, network: str, store: Store) -> None:
    """Until the store answers again; what it has lost meanwhile is due."""
    give_up = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return ensure(database, settings, network, store)
        except Exception:
            if time.monotonic() > give_up:
                raise
        time.sleep(_PAUSE_SECONDS)


def ensure(database: Database, settings: Settings, network: str, store: Store) -> None:
    """Create what a store lacks; of one that lacks a table every published day is due again."""

    def note_loss() -> None:
        with database.write() as connection:
            served.forget(connection, network, store.name)
            served.lose(connection, network, store.name)

    store.ensure(settings, network, note_loss)


@contextmanager
def _noted(database: Database, network: str, store: str) -> Iterator[None]:
    """Note what fails at the days that wait for it."""
    with database.read() as connection:
        due = served.due(connection, network, store)
    try:
        yield
    except Exception as error:
        first = _first_line(error)
        with database.write() as connection:
            served.fail(connection, network, store, due, first)
        if isinstance(error, PermalakeError):
            raise
        raise PermalakeError(f"{network}: {store} took not all ({first}); run it again") from error


def _first_line(error: Exception) -> str:
    return " ".join((str(error).splitlines() or [type(error).__name__])[0].split())


def _next_batch(database: Database, network: str, store: str) -> StoreBatch | None:
    """Return the days that have waited longest, with the state of all tables in one read."""
    with database.write() as connection:
        days = served.due(connection, network, store)[:_DAYS_AT_ONCE]
        if not days:
            return None
        state = locations(connection, PUBLISHED, network)
        return StoreBatch(network, days, state, served.begin(connection, network, store, days, state))


def _alone(database: Database, network: str, store: str) -> AbstractContextManager[leases.Heartbeat]:
    return leases.alone(database, network, store, f"serve-{uuid.uuid4().hex[:12]}", _WAIT_SECONDS)
