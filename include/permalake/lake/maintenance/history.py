"""Which published states can still be read, and which records of the past may go."""

from __future__ import annotations

import json
from dataclasses import dataclass

from sqlalchemy import Connection, and_, delete, exists, or_, select, union, update

from permalake.lake import leases, record
from permalake.lake.catalog import drop_pointers, locations
from permalake.lake.maintenance.limits import Limits
from permalake.lake.state import (
    PUBLISHED,
    attempt_tables,
    attempts,
    days,
    networks,
    pointers,
    publication_tables,
    publications,
    served,
    stamp,
)
from permalake.lake.state import leases as lease_table

PRIVATE = "maintain_"
"""Catalogs in which maintenance works begin so."""


@dataclass(frozen=True)
class PastState:
    """A table as a publication left it."""

    publication_id: int
    table: str
    location: str
    published_at: str


def past_states(
    connection: Connection, network: str, limits: Limits
) -> tuple[list[PastState], list[PastState]]:
    """Return the states of the network's tables to keep, and those to forget.

    A state is kept if it was current at ``limits.history`` or later.
    """
    rows = connection.execute(
        select(publication_tables, publications.c.published_at)
        .join(publications, publications.c.id == publication_tables.c.publication_id)
        .where(publication_tables.c.network == network)
        .order_by(publication_tables.c.publication_id.desc())
    )
    kept: list[PastState] = []
    forgotten: list[PastState] = []
    settled: set[str] = set()
    for row in rows:
        state = PastState(row.publication_id, row.table_name, row.metadata_location, row.published_at)
        (forgotten if state.table in settled else kept).append(state)
        if state.published_at <= stamp(limits.history):
            settled.add(state.table)
    return kept, forgotten


def forget(connection: Connection, network: str, limits: Limits) -> list[PastState]:
    """Forget states before the history, and set the moment from which the network can be read.

    Returns:
        The forgotten states.
    """
    kept, forgotten = past_states(connection, network, limits)
    if not forgotten:
        return []
    concerned = {state.table for state in forgotten}
    oldest = {state.table: state.published_at for state in kept}  # newest first: the oldest stays
    horizon = max(at for table, at in oldest.items() if table in concerned)
    for state in forgotten:
        connection.execute(
            delete(publication_tables).where(
                publication_tables.c.publication_id == state.publication_id,
                publication_tables.c.network == network,
                publication_tables.c.table_name == state.table,
            )
        )
        here = publications.c.id == state.publication_id
        connection.execute(update(publications).where(here).values(logged=None))
    earlier = networks.c.history_from.is_(None) | (networks.c.history_from < horizon)
    connection.execute(
        update(networks).where(networks.c.network == network, earlier).values(history_from=horizon)
    )
    return forgotten


def abandoned(connection: Connection, network: str, limits: Limits) -> list[str]:
    """List open attempts that were begun before ``limits.abandoned`` and that no run holds any more."""
    held = exists().where(
        lease_table.c.run_id == attempts.c.run_id,
        lease_table.c.network == attempts.c.network,
        lease_table.c.kind == attempts.c.kind,
        lease_table.c.beat_at >= leases.oldest_beat(connection),
    )
    rows = connection.execute(
        select(attempts.c.attempt_id).where(
            attempts.c.network == network,
            attempts.c.state == "open",
            attempts.c.begun_at < stamp(limits.abandoned),
            ~held,
        )
    )
    return [row.attempt_id for row in rows]


def attempts_to_keep(connection: Connection) -> set[str]:
    """Return attempts that are open, or that a day's record names as its latest build."""
    rows = connection.execute(
        union(
            select(attempts.c.attempt_id).where(attempts.c.state == "open"),
            select(days.c.attempt_id).where(days.c.attempt_id.is_not(None)),
        )
    )
    return {row.attempt_id for row in rows}


def close(connection: Connection, network: str, limits: Limits) -> list[str]:
    """Discard abandoned attempts and what attempts that ended long ago began from; return the discarded.

    Catalogs that a killed maintenance left go too.
    """
    given_up = abandoned(connection, network, limits)
    for attempt_id in given_up:
        record.close(connection, attempt_id, "discarded")
    over = select(attempts.c.attempt_id).where(
        attempts.c.network == network,
        attempts.c.state != "open",
        attempts.c.begun_at < stamp(limits.abandoned),
    )
    connection.execute(delete(attempt_tables).where(attempt_tables.c.attempt_id.in_(over)))
    drop_private(connection, network)
    return given_up


def drop_private(connection: Connection, network: str) -> None:
    """Drop the catalogs of maintenance; the caller is alone."""
    left = select(pointers.c.catalog_name).where(
        pointers.c.table_namespace == network, pointers.c.catalog_name.startswith(PRIVATE, autoescape=True)
    )
    for row in connection.execute(left.distinct()).all():
        drop_pointers(connection, row.catalog_name)


def repoint_served(connection: Connection, network: str) -> int:
    """Point stores that have a day whole, as it is published, to today's state; return how many days.

    What the store holds of such a day is what today's state holds of it, so older states need not be kept.
    """
    current = locations(connection, PUBLISHED, network)
    same = and_(
        days.c.network == served.c.network,
        days.c.date == served.c.date,
        days.c.publication_id == served.c.publication_id,
    )
    rows = connection.execute(
        select(served.c.store, served.c.date, served.c.publication_id, served.c.states)
        .join(days, same)
        .where(served.c.network == network)
    ).all()
    late = [row for row in rows if json.loads(row.states) != [current]]
    for row in late:
        connection.execute(
            update(served)
            .where(
                served.c.network == network,
                served.c.store == row.store,
                served.c.date == row.date,
                served.c.publication_id == row.publication_id,
            )
            .values(states=json.dumps([current]))
        )
    return len(late)


def served_states(connection: Connection, network: str) -> list[tuple[str, str]]:
    """Return (table, location) of every state of which rows may be in a store.

    Days that :func:`repoint_served` takes care of are left out.
    """
    same = and_(
        days.c.network == served.c.network,
        days.c.date == served.c.date,
        days.c.publication_id == served.c.publication_id,
    )
    rows = connection.execute(
        select(served.c.states)
        .outerjoin(days, same)
        .where(served.c.network == network, days.c.date.is_(None), served.c.states != "[]")
        .distinct()
    )
    return [pair for row in rows for state in json.loads(row.states) for pair in state.items()]


def attempt_states(connection: Connection, network: str, limits: Limits) -> list[tuple[str, str, bool]]:
    """Return (table, location, open) of what attempts began from and staged.

    These are all attempts that are open and not abandoned; of lately published ones, what they count by.
    """
    rows = connection.execute(
        select(attempt_tables, attempts.c.state)
        .join(attempts, attempts.c.attempt_id == attempt_tables.c.attempt_id)
        .where(
            attempts.c.network == network,
            or_(
                attempts.c.state == "open",
                and_(attempts.c.state == "published", attempts.c.begun_at >= stamp(limits.abandoned)),
            ),
            attempts.c.attempt_id.not_in(abandoned(connection, network, limits)),
        )
    )
    states = []
    for row in rows:
        is_open = row.state == "open"
        if is_open or row.pinned_location in {None, row.base_location}:
            states.append((row.table_name, row.base_location, is_open))
        if row.pinned_location is not None:
            states.append((row.table_name, row.pinned_location, is_open))
    return states
