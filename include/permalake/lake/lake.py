"""The lake: where attempts begin, days are published, and readers find them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlalchemy import func, select

from permalake.config import Settings
from permalake.contracts.namespaces import Namespaces
from permalake.errors import PermalakeError
from permalake.intervals import ranges
from permalake.lake import catalog, leases, record, staging, stale
from permalake.lake.attempt import Attempt
from permalake.lake.catalog import locations
from permalake.lake.identity import open_database
from permalake.lake.publication_log import check_not_behind
from permalake.lake.publish import Publication, publish
from permalake.lake.query import DEFAULT_LIMITS, QueryLimits, QueryResult, run_query
from permalake.lake.rejected import days_with_rejected, rejected
from permalake.lake.state import PUBLISHED, Database, days, publications
from permalake.lake.status import DayStatus, status

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Lake:
    """Iceberg tables whose pointers, with all that is known about days, live in one catalog database."""

    def __init__(self, settings: Settings, namespaces: Namespaces) -> None:
        self._settings = settings
        self._namespaces = namespaces
        self._database = open_database(settings)

    # -- Building ------------------------------------------------------------------------------------

    def ensure(self, network: str) -> None:
        """The namespace and every contract table exist, with every column of the contract."""
        catalog.ensure(self._settings, self._database, network, self._namespaces(network).tables)

    def begin(
        self,
        network: str,
        start: date,
        end: date,
        run_id: str,
        *,
        fingerprint: str = "",
        wait: float = 0.0,
    ) -> Attempt:
        """A new staging of start..end (inclusive) as of what is published now.

        ``fingerprint`` is any text that stays the same as long as the input does. While another run builds
        one of these days: waits up to ``wait`` seconds, then :class:`PermalakeError` names it. Earlier
        unpublished attempts over these days are superseded.
        """
        if end < start:
            raise PermalakeError(f"{network}: {end} lies before {start}")
        check_not_behind(self._settings, self._database)
        self.ensure(network)
        leases.take(self._database, network, start, end, run_id=run_id, wait=wait)
        with self._database.write() as connection:
            row = record.begin(connection, network, start, end, run_id=run_id, fingerprint=fingerprint)
        return Attempt(self._settings, self._database, row, self._namespaces(network).tables)

    def resume(self, network: str, run_id: str) -> Attempt:
        """The newest attempt of a run, open or published; :class:`PermalakeError` when there is none or
        its staging is gone."""
        with self._database.read() as connection:
            row = record.newest(connection, network, run_id)
        if row is None:
            raise PermalakeError(f"{network}: run {run_id} has begun nothing; run it from its first step")
        if row.state not in {"open", "published"}:
            raise PermalakeError(
                f"{network} {leases.spell(row.start, row.end)}: the staging of run {run_id} was {row.state}; "
                "run it from its first step"
            )
        if row.state == "open":
            leases.take(self._database, network, row.start, row.end, run_id=run_id)
        return Attempt(self._settings, self._database, row, self._namespaces(network).tables)

    def resume_or_begin(self, network: str, start: date, end: date, run_id: str) -> Attempt:
        """The run's own attempt, or, for a run that starts at a later step and has begun none, a new one as
        of what is published; :class:`PermalakeError` when the run's staging is gone."""
        with self._database.read() as connection:
            begun = record.newest(connection, network, run_id) is not None
        return self.resume(network, run_id) if begun else self.begin(network, start, end, run_id)

    def publish(self, attempt: Attempt) -> Publication:
        """Publish the attempt's passing days, all tables in one transaction; again: a no-op that tells the
        earlier publication. The lease is released when it is done."""
        done = publish(self._settings, self._database, attempt)
        attempt.rest()
        return done

    def discard(self, attempt: Attempt, landing: bool = True) -> None:
        """End an attempt without publishing; with its landing folder unless told otherwise."""
        attempt.rest()
        with self._database.write() as connection:
            row = record.load(connection, attempt.id)
            if row is not None and row.state == "open":
                record.close(connection, attempt.id, "discarded")
        if landing:
            self.clear_landing(attempt)

    def clear_landing(self, attempt: Attempt) -> None:
        """Delete the attempt's landing folder."""
        from permalake.lake.maintenance.storage import remove_folder

        remove_folder(attempt.landing)

    def hold(self, network: str, start: date, end: date, run_id: str, wait: float = 0.0) -> None:
        """Take the days for a run before its first job is submitted; as :meth:`begin` does, waiting up to
        ``wait`` seconds for another run that builds one of them."""
        leases.take(self._database, network, start, end, run_id=run_id, wait=wait)

    def release(self, run_id: str) -> None:
        """Let go of the days that a run holds: it is over, for better or worse."""
        leases.release(self._database, run_id)

    @property
    def database(self) -> Database:
        """The catalog database, for state that a domain keeps beside the lake's own."""
        return self._database

    # -- Knowing -------------------------------------------------------------------------------------

    def unfinished(self, network: str, start: date, end: date) -> str | None:
        """The run whose staging of exactly these days is complete (it was pinned) but not published; None
        when there is none."""
        with self._database.read() as connection:
            return record.unfinished(connection, network, start, end)

    def unchanged(self, network: str, start: date, end: date, fingerprint: str) -> bool:
        """Whether every day of start..end was last published from input with this fingerprint, and none is
        refused, failed or stale since.

        Raises:
            UnreadableTableError: if a published table is damaged: nobody can say what it holds.
        """
        with self._database.read() as connection:
            troubled = connection.execute(
                select(days.c.date).where(
                    days.c.network == network,
                    days.c.date.between(start, end),
                    days.c.refused.is_not(None)
                    | (days.c.audited == "failed")
                    | days.c.stale_reason.is_not(None),
                )
            ).first()
            latest_first = connection.execute(
                select(publications)
                .where(
                    publications.c.network == network,
                    publications.c.kind == "days",
                    publications.c.start <= end,
                    publications.c.end >= start,
                )
                .order_by(publications.c.id.desc())
            ).all()
        if troubled:
            return False
        open_ranges = [(start.toordinal(), end.toordinal())]
        for row in latest_first:
            first, last = row.start.toordinal(), row.end.toordinal()
            rest = [
                piece
                for a, b in open_ranges
                for piece in ((a, min(b, first - 1)), (max(a, last + 1), b))
                if piece[0] <= piece[1]
            ]
            if rest != open_ranges and row.fingerprint != fingerprint:
                return False
            open_ranges = rest
        if open_ranges:
            return False
        catalog.check_readable(self.locations(network))
        return True

    def mark_stale(self, network: str, days: Iterable[date], reason: str) -> None:
        """Published days whose input or basis has changed; the next publication of the day clears it,
        unless it is being built already."""
        with self._database.write() as connection:
            for start, end in ranges(days):
                stale.mark(connection, network, start, end, reason)

    def stale(self, network: str) -> list[tuple[date, date]]:
        """Stale days in order, as ranges."""
        with self._database.read() as connection:
            return ranges(stale.listed(connection, network))

    def status(self, network: str | None = None) -> list[DayStatus]:
        """Every day the lake knows of."""
        return status(self._database, network)

    # -- Reading -------------------------------------------------------------------------------------

    def query(self, sql: str, as_of: datetime | None = None) -> pa.Table:
        """DuckDB SQL over the published state."""
        return self.answer(sql, as_of).table()

    def answer(
        self, sql: str, as_of: datetime | None = None, limits: QueryLimits = DEFAULT_LIMITS
    ) -> QueryResult:
        """Run a query whose rows come batch by batch, with DuckDB's column types."""
        return run_query(self._database, self._namespaces, sql, as_of, limits)

    def rejected(
        self,
        network: str | None = None,
        day: date | None = None,
        reason: str | None = None,
        origin: str | None = None,
    ) -> pa.Table:
        """Quarantine rows with their network; filters that are None let everything through."""
        return rejected(self._database, network, day, reason, origin)

    def quarantined(self, network: str, start: date, end: date) -> int:
        """How many rows are in quarantine of start..end."""
        with self._database.read() as connection:
            found = connection.execute(
                select(func.sum(days.c.quarantined)).where(
                    days.c.network == network, days.c.date.between(start, end)
                )
            ).scalar()
        return int(found or 0)

    def days_with_rejected(self, network: str) -> list[date]:
        """Days of which something is in quarantine."""
        return days_with_rejected(self._database, network)

    def locations(self, network: str) -> dict[str, str]:
        """Published metadata location of every table, in one read."""
        with self._database.read() as connection:
            return locations(connection, PUBLISHED, network)

    def bind(self, spark: SparkSession) -> None:
        """Make the published tables known to this session as ``permalake.NETWORK.table``."""
        staging.bind(spark, self._settings, PUBLISHED)

    def table(self, spark: SparkSession, network: str, name: str) -> DataFrame:
        """A published table in Spark."""
        self.bind(spark)
        return spark.read.table(staging.full_name(PUBLISHED, network, name))
