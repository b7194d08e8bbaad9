"""Records of attempts and their days in the state tables."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date

from sqlalchemy import Connection, insert, select, update

from permalake.lake.catalog import copy_pointers, drop_pointers, locations
from permalake.lake.leases import DAYS
from permalake.lake.state import PUBLISHED, attempt_days, attempt_tables, attempts, clock, days, now, upsert


@dataclass(frozen=True)
class AttemptRow:
    """One attempt as it was begun. ``kind``: ``days`` builds days, ``carry`` their carried tables."""

    attempt_id: str
    network: str
    start: date
    end: date
    run_id: str
    state: str
    begun_at: str
    pinned_at: str | None
    fingerprint: str
    publication_id: int | None
    kind: str = DAYS


_COLUMNS = [attempts.c[name] for name in AttemptRow.__dataclass_fields__]


def begin(
    connection: Connection,
    network: str,
    start: date,
    end: date,
    *,
    run_id: str,
    fingerprint: str = "",
    kind: str = DAYS,
) -> AttemptRow:
    """Record a new attempt: a private copy of the published pointers.

    Earlier open attempts over any of its days are superseded: whoever began them has lost the lease, or
    begins anew.
    """
    supersede(connection, network, start, end, kind)
    attempt_id = f"stage_{uuid.uuid4().hex[:12]}"
    base = locations(connection, PUBLISHED, network)
    copy_pointers(connection, attempt_id, network, base)
    row = {
        "attempt_id": attempt_id,
        "kind": kind,
        "network": network,
        "start": start,
        "end": end,
        "run_id": run_id,
        "state": "open",
        "begun_at": clock(connection),
        "fingerprint": fingerprint,
    }
    connection.execute(insert(attempts).values(**row, notes="[]"))
    connection.execute(
        insert(attempt_tables),
        [{"attempt_id": attempt_id, "table_name": t, "base_location": at} for t, at in base.items()],
    )
    return AttemptRow(**row, pinned_at=None, publication_id=None)  # type: ignore[arg-type]


def supersede(connection: Connection, network: str, start: date, end: date, kind: str = DAYS) -> None:
    """End open attempts of a kind over any day of start..end; their pointers go, their files stay."""
    overlapping = (
        attempts.c.network == network,
        attempts.c.kind == kind,
        attempts.c.state == "open",
        attempts.c.start <= end,
        attempts.c.end >= start,
    )
    for row in connection.execute(select(attempts.c.attempt_id).where(*overlapping)).all():
        close(connection, row.attempt_id, "superseded")


def replay_catalog(attempt_id: str) -> str:
    """Private catalog in which the attempt's files are put on top of others' publications."""
    return f"{attempt_id}_replay"


def close(connection: Connection, attempt_id: str, state: str, publication_id: int | None = None) -> None:
    """End the attempt: published, superseded or discarded."""
    drop_pointers(connection, attempt_id)
    drop_pointers(connection, replay_catalog(attempt_id))
    connection.execute(
        update(attempts)
        .where(attempts.c.attempt_id == attempt_id)
        .values(state=state, publication_id=publication_id)
    )


def newest(connection: Connection, network: str, run_id: str) -> AttemptRow | None:
    """Return the newest attempt of a run to build its days."""
    rows = connection.execute(
        select(*_COLUMNS)
        .where(attempts.c.network == network, attempts.c.run_id == run_id, attempts.c.kind == DAYS)
        .order_by(attempts.c.begun_at.desc())
        .limit(1)
    )
    row = rows.mappings().first()
    return AttemptRow(**row) if row else None


def unfinished(connection: Connection, network: str, start: date, end: date) -> str | None:
    """Return the run of the newest open, pinned attempt over exactly start..end."""
    return connection.execute(
        select(attempts.c.run_id)
        .where(
            attempts.c.network == network,
            attempts.c.kind == DAYS,
            attempts.c.start == start,
            attempts.c.end == end,
            attempts.c.state == "open",
            attempts.c.pinned_at.is_not(None),
        )
        .order_by(attempts.c.begun_at.desc())
        .limit(1)
    ).scalar()


def load(connection: Connection, attempt_id: str) -> AttemptRow | None:
    """Return the attempt of that id."""
    rows = connection.execute(select(*_COLUMNS).where(attempts.c.attempt_id == attempt_id))
    row = rows.mappings().first()
    return AttemptRow(**row) if row else None


def base_locations(connection: Connection, attempt_id: str) -> dict[str, str]:
    """Return the published pointers when the attempt began."""
    rows = connection.execute(select(attempt_tables).where(attempt_tables.c.attempt_id == attempt_id))
    return {row.table_name: row.base_location for row in rows}


def pinned_locations(connection: Connection, attempt_id: str) -> dict[str, str]:
    """Pointers that audit judges and publish moves: those that the attempt changed. Empty before the pin."""
    rows = connection.execute(
        select(attempt_tables).where(
            attempt_tables.c.attempt_id == attempt_id,
            attempt_tables.c.pinned_location.is_not(None),
            attempt_tables.c.pinned_location != attempt_tables.c.base_location,
        )
    )
    return {row.table_name: row.pinned_location for row in rows}


def pin(connection: Connection, attempt_id: str, staged: dict[str, str]) -> None:
    """Record the staged pointers. Verdicts about anything else no longer count."""
    before = pinned_locations(connection, attempt_id)
    for table, location in staged.items():
        connection.execute(
            update(attempt_tables)
            .where(attempt_tables.c.attempt_id == attempt_id, attempt_tables.c.table_name == table)
            .values(pinned_location=location)
        )
    if before != pinned_locations(connection, attempt_id):
        connection.execute(
            update(attempt_days)
            .where(attempt_days.c.attempt_id == attempt_id)
            .values(audited=None, failures=None)
        )
    connection.execute(update(attempts).where(attempts.c.attempt_id == attempt_id).values(pinned_at=now()))


def set_attempt_day(connection: Connection, attempt_id: str, day: date, **values: object) -> None:
    """Record what the attempt says about one of its days."""
    upsert(connection, attempt_days, {"attempt_id": attempt_id, "date": day}, values)


def set_day(connection: Connection, network: str, day: date, **values: object) -> None:
    """Record what the lake says about a day."""
    upsert(connection, days, {"network": network, "date": day}, values, {"quarantined": 0})


def known_days(connection: Connection, network: str, start: date, end: date) -> set[date]:
    """Days of start..end that the lake has ever said something about."""
    rows = connection.execute(
        select(days.c.date).where(days.c.network == network, days.c.date.between(start, end))
    )
    return {row.date for row in rows}


def refusals(connection: Connection, attempt_id: str) -> dict[date, str]:
    """Days that the attempt refuses, with the reason."""
    rows = connection.execute(
        select(attempt_days.c.date, attempt_days.c.refused)
        .where(attempt_days.c.attempt_id == attempt_id, attempt_days.c.refused.is_not(None))
        .order_by(attempt_days.c.date)
    )
    return {row.date: row.refused for row in rows}


def verdicts(connection: Connection, attempt_id: str) -> dict[date, tuple[bool, list[str]]]:
    """Return what the audit said, by day."""
    rows = connection.execute(
        select(attempt_days).where(
            attempt_days.c.attempt_id == attempt_id, attempt_days.c.audited.is_not(None)
        )
    )
    return {row.date: (row.audited == "passed", json.loads(row.failures or "[]")) for row in rows}


def withheld(connection: Connection, attempt_id: str) -> dict[date, str]:
    """Days that must not be published, with the reason: refused ones, and those that failed their audit."""
    failed = {
        day: "audit failed: " + ("; ".join(lines) or "no expectation named")
        for day, (ok, lines) in verdicts(connection, attempt_id).items()
        if not ok
    }
    return dict(sorted((failed | refusals(connection, attempt_id)).items()))


def withdrawn(
    connection: Connection, network: str, tables: Collection[str], rows: Mapping[date, Mapping[str, int]]
) -> dict[date, list[str]]:
    """Return which of ``tables`` lose the rows that they have of a day; ``rows`` is what will be there."""
    if not rows:
        return {}
    here = days.c.network == network, days.c.date.between(min(rows), max(rows))
    lost = {
        row.date: sorted((json.loads(row.rows or "{}").keys() & set(tables)) - rows[row.date].keys())
        for row in connection.execute(select(days.c.date, days.c.rows).where(*here))
        if row.date in rows
    }
    return {day: names for day, names in lost.items() if names}


def add_note(connection: Connection, attempt_id: str, text: str) -> None:
    """Add a remark to every day of the attempt."""
    here = attempts.c.attempt_id == attempt_id
    notes = json.loads(connection.execute(select(attempts.c.notes).where(here)).scalar_one())
    if text not in notes:
        connection.execute(update(attempts).where(here).values(notes=json.dumps([*notes, text])))


def drop_notes(connection: Connection, attempt_id: str, topics: tuple[str, ...]) -> None:
    """Drop the remarks that begin with one of ``topics``, of the whole attempt and of its days."""
    whole, single = notes(connection, attempt_id)
    kept = json.dumps([text for text in whole if not text.startswith(topics)])
    connection.execute(update(attempts).where(attempts.c.attempt_id == attempt_id).values(notes=kept))
    for day, texts in single.items():
        left = [text for text in texts if not text.startswith(topics)]
        set_attempt_day(connection, attempt_id, day, notes=json.dumps(left))


def keep_facts(connection: Connection, attempt: AttemptRow) -> None:
    """Take over the notes and gaps of the published days of an attempt."""
    here = (
        days.c.network == attempt.network,
        days.c.date.between(attempt.start, attempt.end),
        days.c.published_at.is_not(None),
    )
    for row in connection.execute(select(days.c.date, days.c.notes, days.c.gaps).where(*here)).all():
        set_attempt_day(connection, attempt.attempt_id, row.date, notes=row.notes, gaps=row.gaps)


def gaps(connection: Connection, attempt_id: str) -> dict[date, str]:
    """Return what the source lacks by day, as JSON lists."""
    rows = connection.execute(
        select(attempt_days.c.date, attempt_days.c.gaps).where(
            attempt_days.c.attempt_id == attempt_id, attempt_days.c.gaps.is_not(None)
        )
    )
    return {row.date: row.gaps for row in rows}


def notes(connection: Connection, attempt_id: str) -> tuple[list[str], dict[date, list[str]]]:
    """Remarks on the whole attempt, and on single days."""
    whole = connection.execute(select(attempts.c.notes).where(attempts.c.attempt_id == attempt_id)).scalar()
    single = connection.execute(
        select(attempt_days.c.date, attempt_days.c.notes).where(
            attempt_days.c.attempt_id == attempt_id, attempt_days.c.notes.is_not(None)
        )
    )
    return json.loads(whole or "[]"), {row.date: json.loads(row.notes) for row in single}
