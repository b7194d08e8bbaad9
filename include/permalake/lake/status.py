"""The facts that ``permalake status`` shows: every day in the lake, and the gaps between them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Any

from pyiceberg.conversions import from_bytes
from pyiceberg.types import IntegerType
from sqlalchemy import Connection, Row, func, select

from permalake.contracts.reason_codes import failure_codes, gap_code
from permalake.contracts.steps import AFTER_PUBLICATION
from permalake.intervals import dates
from permalake.lake.catalog import UnreadableTableError, locations, open_table
from permalake.lake.counts import day_of, files
from permalake.lake.database import Database
from permalake.lake.leases import format_range
from permalake.lake.state import PUBLISHED, days, publications, served
from permalake.lake.state import step_runs as steps

NO_TIME = date(1970, 1, 1)
"""The day of messages whose body tells no time: no day of a calendar."""
NEVER_BUILT = "never built"
"""The error of a day that no run has left a trace of, between days that were built."""


@dataclass(frozen=True)
class DayStatus:
    """One day of one network. Times are RFC 3339 UTC text; None where it has not happened.

    ``audited`` is ``passed`` or ``failed``; ``rows`` per table as published; ``gaps`` say what is missing
    between this day and the one before, or in its source; ``error`` is why it is not published as built
    last; ``carried`` says whether the carried tables rest on the day as it is published; ``stores`` says
    when each store (cassandra, bigtable) was given the day as it is published, None while it waits.
    """

    network: str
    date: date
    built: str | None
    audited: str | None
    published: str | None
    rows: dict[str, int] = field(default_factory=dict)
    quarantined: int = 0
    gaps: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    stale: str | None = None
    carried: bool = False
    error: str | None = None
    run_id: str | None = None
    attempt: str | None = None
    stores: dict[str, str | None] = field(default_factory=dict)

    @property
    def reasons(self) -> tuple[str, ...]:
        """The codes of why it is not as it should be, as ``contracts.reasons`` lists them."""
        failures = failure_codes(self.error) if self.error else ()
        stale = ("stale",) if self.stale else ()
        behind = any(at is None for at in self.stores.values()) if self.published else False
        codes = (*failures, *stale, *map(gap_code, self.gaps), *(("store_behind",) if behind else ()))
        return tuple(dict.fromkeys(codes))


@dataclass(frozen=True, slots=True)
class _Failure:
    began: str
    run_id: str
    reason: str


def status(
    database: Database, network: str | None = None, *, with_never_built: bool = False
) -> list[DayStatus]:
    """Return days in order of network and date, those too of which every run has failed.

    Counts come from the state tables, gaps from Iceberg's metadata, failures from the step ledger.
    ``with_never_built``: whether days count that lie between others and that nothing tells of.
    """
    with database.read() as connection:
        query = select(days).order_by(days.c.network, days.c.date)
        rows = connection.execute(query.where(days.c.network == network) if network else query).all()
        names = sorted({row.network for row in rows})
        covered = {name: _covered(connection, name) for name in names}
        gaps = {name: _gaps(connection, name, covered[name]) for name in names}
        stores = _stores(connection)
        failures = _failures(connection, network)
    by_day = {
        (row.network, row.date): _day(
            row, gaps.get(row.network, {}).get(row.date, []), stores.get((row.network, row.date), [])
        )
        for row in rows
    }
    for key, failure in failures.items():
        by_day[key] = _with_failure(by_day.get(key) or DayStatus(*key, None, None, None), failure)
    if with_never_built:
        for name, at in _never_built(by_day, covered):
            by_day[name, at] = DayStatus(name, at, None, None, None, error=NEVER_BUILT)
    return [by_day[key] for key in sorted(by_day)]


def _never_built(
    built: Collection[tuple[str, date]], covered: Mapping[str, list[tuple[date, date]]]
) -> list[tuple[str, date]]:
    """Return the days between a network's first and last one that neither runs nor publications tell of.

    Synthetic days, those to come, have a first and a last one of their own.
    """
    today = datetime.now(UTC).date()
    groups: dict[tuple[str, bool], list[date]] = {}
    for name, day in sorted(built):
        if day != NO_TIME:
            groups.setdefault((name, day > today), []).append(day)
    return [
        (name, missing)
        for (name, _), listed in groups.items()
        for day, following in pairwise(listed)
        if (following - day).days > 1
        for hole in _holes(covered.get(name, []), day, following)
        for missing in dates(*hole)
    ]


def notes_of(database: Database, network: str, day: date) -> list[str]:
    """Return what the build of a day noted, such as that its source ends within it."""
    with database.read() as connection:
        here = (days.c.network == network) & (days.c.date == day)
        return _lines(connection.execute(select(days.c.notes).where(here)).scalar())


def published_again(database: Database) -> dict[str, set[date]]:
    """Return the days that several publications of rows cover, by network."""
    query = select(publications.c.network, publications.c.start, publications.c.end)
    with database.read() as connection:
        rows = connection.execute(query.where(publications.c.kind == "days")).all()
    counted = Counter((row.network, day) for row in rows for day in dates(row.start, row.end))
    by_network: dict[str, set[date]] = {}
    for (network, day), times in counted.items():
        if times > 1:
            by_network.setdefault(network, set()).add(day)
    return by_network


def times_published(database: Database, network: str, day: date) -> int:
    """Return how many publications of rows cover a day."""
    query = (
        select(func.count())
        .select_from(publications)
        .where(publications.c.network == network, publications.c.kind == "days")
        .where(publications.c.start <= day, publications.c.end >= day)
    )
    with database.read() as connection:
        return connection.execute(query).scalar_one()


def has_published(database: Database, network: str) -> bool:
    """Return whether days of a network were ever published, with rows or without."""
    here = (publications.c.network == network) & (publications.c.kind == "days")
    with database.read() as connection:
        return connection.execute(select(publications.c.id).where(here).limit(1)).first() is not None


def networks_with_days(database: Database) -> set[str]:
    """Return the networks of which a run has looked at some day."""
    with database.read() as connection:
        return set(connection.execute(select(days.c.network).distinct()).scalars())


def carried_until(days: Iterable[DayStatus]) -> date | None:
    """Return the last published day of one network up to which all are carried; None before the first."""
    published = sorted((day for day in days if day.published), key=lambda day: day.date)
    last = None
    for day in published:
        if not day.carried:
            break
        last = day.date
    return last


def _failures(connection: Connection, network: str | None) -> dict[tuple[str, date], _Failure]:
    """Return the newest failed step before publication by day, unless the day was published since.

    The database leaves out failures whose days were all published since, so that what is compared here does
    not grow with the history.
    """
    columns = (steps.c.network, steps.c.run_id, steps.c.start, steps.c.end, steps.c.reason, steps.c.began_at)
    since = (
        select(publications.c.id)
        .where(
            publications.c.network == steps.c.network,
            publications.c.kind == "days",
            publications.c.published_at > steps.c.began_at,
            publications.c.start <= steps.c.start,
            publications.c.end >= steps.c.end,
        )
        .exists()
    )
    failed = select(*columns).where(
        steps.c.state.in_(("failed", "invalid")), steps.c.step.not_in(AFTER_PUBLICATION), ~since
    )
    rows = connection.execute(
        (failed.where(steps.c.network == network) if network else failed).order_by(steps.c.began_at)
    ).all()
    if not rows:
        return {}
    published = connection.execute(
        select(
            publications.c.network,
            publications.c.run_id,
            publications.c.start,
            publications.c.end,
            publications.c.published_at,
        ).where(publications.c.kind == "days", publications.c.published_at > rows[0].began_at)
    ).all()
    failures: dict[tuple[str, date], _Failure] = {}
    for row in rows:
        later = [
            publication
            for publication in published
            if publication.network == row.network
            and (publication.published_at > row.began_at or publication.run_id == row.run_id)
        ]
        for day in dates(row.start, row.end):
            if not any(publication.start <= day <= publication.end for publication in later):
                failures[row.network, day] = _Failure(
                    row.began_at, row.run_id, row.reason or "the run failed"
                )
    return failures


def _with_failure(day: DayStatus, failure: _Failure) -> DayStatus:
    """Add why the newest run over a day failed, unless the day itself has a later build."""
    is_older = failure.began <= max(day.built or "", day.published or "")
    if is_older or (day.error and day.run_id == failure.run_id):
        return day
    return replace(day, error=failure.reason, run_id=failure.run_id)


def _stores(connection: Connection) -> dict[tuple[str, date], list[Row[Any]]]:
    by_day: dict[tuple[str, date], list[Row[Any]]] = {}
    for row in connection.execute(select(served).order_by(served.c.store)):
        by_day.setdefault((row.network, row.date), []).append(row)
    return by_day


def _day(row: Row[Any], gaps: list[str], stores: list[Row[Any]]) -> DayStatus:
    failures = _lines(row.failures)
    error = row.refused
    if row.audited == "failed":
        error = error or "audit failed: " + "; ".join(failures)
    return DayStatus(
        network=row.network,
        date=row.date,
        built=row.built_at,
        audited=row.audited,
        published=row.published_at,
        rows=json.loads(row.rows or "{}"),
        quarantined=row.quarantined,
        gaps=[*gaps, *_lines(row.gaps)],
        notes=[*_lines(row.notes), *(f"{served.store}: {served.error}" for served in stores if served.error)],
        failures=failures,
        stale=row.stale_reason,
        carried=row.published_at is not None and row.carried_id == row.publication_id,
        error=error,
        run_id=row.run_id,
        attempt=row.attempt_id,
        stores={
            served.store: served.served_at if served.publication_id == row.publication_id else None
            for served in stores
        },
    )


def _lines(text: str | None) -> list[str]:
    # Most of thousands of days have none.
    lines: list[str] = json.loads(text) if text and text != "[]" else []
    return lines


def _gaps(connection: Connection, network: str, covered: list[tuple[date, date]]) -> dict[date, list[str]]:
    """Return what is missing before each published day: milestones, and dates never built."""
    location = locations(connection, PUBLISHED, network).get("date_cache")
    if location is None:
        return {}
    try:
        bounds = _milestones_by_day(location)
    except UnreadableTableError as damaged:
        last = connection.execute(select(func.max(days.c.date)).where(days.c.network == network)).scalar()
        return {last: [f"gaps are unknown: {network}.date_cache: {damaged}"]} if last else {}
    by_day: dict[date, list[str]] = {}
    for (day, (_, last)), (following, (first, _)) in pairwise(sorted(bounds.items())):
        texts = []
        if first != last + 1:
            missing = f"{last + 1}" if first == last + 2 else f"{last + 1}..{first - 1}"
            texts.append(f"milestones {missing} missing" if first > last else f"milestones overlap {day}")
        texts += [f"{format_range(a, b)} {NEVER_BUILT}" for a, b in _holes(covered, day, following)]
        if texts:
            by_day[following] = texts
    return by_day


# A metadata file never changes, and every page that shows days asks for this.
@lru_cache(maxsize=32)
def _milestones_by_day(location: str) -> dict[date, tuple[int, int]]:
    """Return first and last milestone per day, from the bounds in the manifests: no data file is opened."""
    table = open_table(location)
    start_id = table.schema().find_field("start_ms").field_id
    end_id = table.schema().find_field("end_ms").field_id
    by_day = {}
    for file in files(table):
        lower, upper = (file.lower_bounds or {}).get(start_id), (file.upper_bounds or {}).get(end_id)
        if lower is not None and upper is not None:
            by_day[day_of(file)] = (
                int(from_bytes(IntegerType(), lower)),
                int(from_bytes(IntegerType(), upper)),
            )
    return by_day


def _covered(connection: Connection, network: str) -> list[tuple[date, date]]:
    """Ranges that were published, empty days included, and days with a state, in order of the first day."""
    rows = connection.execute(
        select(publications.c.start, publications.c.end, publications.c.withheld)
        .where(publications.c.network == network, publications.c.kind == "days")
        .distinct()
    )
    with_state = connection.execute(select(days.c.date).where(days.c.network == network)).scalars()
    a_day, ranges = timedelta(days=1), [(day, day) for day in with_state]
    for start, end, withheld in rows:
        first = start
        for day in sorted(map(date.fromisoformat, json.loads(withheld or "{}"))):
            ranges.append((first, day - a_day))
            first = day + a_day
        ranges.append((first, end))
    return sorted((first, last) for first, last in ranges if first <= last)


def _holes(covered: list[tuple[date, date]], day: date, following: date) -> list[tuple[date, date]]:
    """Ranges strictly between two days that nothing covers."""
    a_day = timedelta(days=1)
    holes, open_from = [], day + a_day
    for start, end in covered:
        if end < open_from:
            continue
        if start >= following:
            break
        if start > open_from:
            holes.append((open_from, start - a_day))
        open_from = end + a_day
    if open_from < following:
        holes.append((open_from, following - a_day))
    return holes
