"""An attempt: one private staging of a range of days, from begin to publish."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING

from sqlalchemy import select

from permalake.config import Settings
from permalake.contracts import QUARANTINE, Table
from permalake.errors import PermalakeError
from permalake.lake import apart, record, staging, stale
from permalake.lake.catalog import locations, move_pointer, open_table
from permalake.lake.counts import day_of, files, rows_per_day
from permalake.lake.leases import Heartbeat, beat, spell
from permalake.lake.record import AttemptRow
from permalake.lake.state import Database, attempt_days, now

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_EARLIEST = date(1970, 1, 1)


class Attempt:
    """A staging of ``network`` start..end that readers never see. Made by :class:`permalake.lake.Lake`."""

    def __init__(
        self, settings: Settings, database: Database, row: AttemptRow, contracts: Mapping[str, Table]
    ) -> None:
        self._settings = settings
        self._contracts = contracts
        self._database = database
        self._row = row
        self._heartbeat = Heartbeat(database, row.network, row.run_id) if row.state == "open" else None

    @property
    def id(self) -> str:
        """Identifier, ``stage_`` and twelve hex digits."""
        return self._row.attempt_id

    @property
    def catalog(self) -> str:
        """Name of the private catalog, in the database and in Spark."""
        return self._row.attempt_id

    @property
    def network(self) -> str:
        """Lake namespace."""
        return self._row.network

    @property
    def start(self) -> date:
        """First day."""
        return self._row.start

    @property
    def end(self) -> date:
        """Last day, inclusive."""
        return self._row.end

    @property
    def run_id(self) -> str:
        """The run that began it."""
        return self._row.run_id

    @property
    def fingerprint(self) -> str:
        """Of the input, as the run gave it."""
        return self._row.fingerprint

    @property
    def landing(self) -> str:
        """Folder for files that belong to this attempt alone."""
        return f"{self._settings.lake.warehouse}/_attempts/{self.id}"

    def __repr__(self) -> str:
        return f"Attempt({self.id}, {self.network} {spell(self.start, self.end)}, run {self.run_id})"

    # -- Spark ---------------------------------------------------------------------------------------

    def bind(self, spark: SparkSession) -> Attempt:
        """Make the staging known to this session as a catalog named :attr:`catalog`."""
        staging.bind(spark, self._settings, self.catalog)
        return self

    def stage(self, frame: DataFrame, contract: Table) -> None:
        """Replace start..end of a staged table by the frame's rows (select, cast, sort by contract).

        An empty frame leaves no rows. :class:`PermalakeError` when a column is missing, when a row lies
        outside start..end, or when the staging is gone.
        """
        if contract.name == QUARANTINE.name:
            raise PermalakeError("quarantine rows are committed apart; use Attempt.quarantine")
        before = self._open_location(contract.name)
        self.bind(frame.sparkSession)
        name = staging.full_name(self.catalog, self.network, contract.name)
        staging.replace(staging.shape(frame, contract), contract, name, self.start, self.end)
        after = self._open_location(contract.name)
        if stray := self._stray_days(before, after):
            with self._database.write() as connection:
                move_pointer(connection, self.catalog, self.network, contract.name, old=after, new=before)
            raise PermalakeError(
                f"{contract.name}: rows of {spell(min(stray), max(stray))} do not belong to "
                f"{spell(self.start, self.end)}"
            )

    def _stray_days(self, before: str, after: str) -> set[date]:
        known = {file.file_path for file in files(open_table(before))} if before != after else set()
        written = files(open_table(after)) if before != after else iter(())
        new = {day_of(file) for file in written if file.file_path not in known}
        return {day for day in new if not self.start <= day <= self.end}

    def table(self, spark: SparkSession, name: str) -> DataFrame:
        """A whole table as staged: history as published when the attempt began, and this attempt."""
        self._open_location(name)
        self.bind(spark)
        return spark.read.table(staging.full_name(self.catalog, self.network, name))

    def days(self, spark: SparkSession, name: str) -> DataFrame:
        """A table as staged, start..end only."""
        return self.table(spark, name).where(staging.span(self.start, self.end))

    def before(self, spark: SparkSession, name: str) -> DataFrame:
        """Rows of a staged table's latest day before start: the state that these days go on from. None where
        there is no such day. Found by metadata, nearest days first."""
        table, location = self.table(spark, name), self._open_location(name)
        until, reach = self.start - timedelta(days=1), timedelta(days=8)
        while until >= _EARLIEST:
            since = max(until - reach, _EARLIEST)
            if found := rows_per_day(location, since, until):
                return table.where(staging.span(max(found), max(found)))
            until, reach = since - timedelta(days=1), 4 * reach
        return table.limit(0)

    def quarantine(self, frame: DataFrame) -> int:
        """Replace the quarantine rows of start..end, seen by readers at once; returns how many there are.

        Columns as the quarantine contract has them, ``seen_at`` optional; rows outside start..end are left
        out. ``seen_at`` keeps its first value; nothing is written when nothing changed.
        """
        self._open_location(QUARANTINE.name)
        return apart.quarantine(self._settings, self._database, self._row, frame)

    def keep(self, frame: DataFrame, contract: Table) -> int:
        """Add the rows whose key is not there yet to a table that only ever grows (a cache such as
        ``token_prices``), of any date, seen by readers at once; returns how many were new."""
        self._open_location(contract.name)
        return apart.keep(self._settings, self._database, self._row, frame, contract)

    # -- What is known about its days ----------------------------------------------------------------

    def refuse(self, day: date, reason: str) -> None:
        """This day will not be published; readers stay on its last good state. ``reason`` is one line."""
        self._check_day(day)
        line = " ".join(reason.split())
        with self._database.write() as connection:
            record.set_attempt_day(connection, self.id, day, refused=line)
            record.set_day(
                connection,
                self.network,
                day,
                refused=line,
                run_id=self.run_id,
                attempt_id=self.id,
                built_at=now(),
                audited=None,
                failures=None,
            )

    @property
    def refused(self) -> dict[date, str]:
        """Refused days with their reasons."""
        with self._database.read() as connection:
            return record.refusals(connection, self.id)

    def note(self, text: str, day: date | None = None) -> None:
        """A remark that ``permalake status`` shows, on one day or on every day of the attempt."""
        line = " ".join(text.split())
        with self._database.write() as connection:
            if day is None:
                record.add_note(connection, self.id, line)
                return
            self._check_day(day)
            here = (attempt_days.c.attempt_id == self.id, attempt_days.c.date == day)
            old = json.loads(connection.execute(select(attempt_days.c.notes).where(*here)).scalar() or "[]")
            if line not in old:
                record.set_attempt_day(connection, self.id, day, notes=json.dumps([*old, line]))

    def report_gaps(self, day: date, lines: Sequence[str]) -> None:
        """What the source of a day lacks, as ``permalake status`` shows it once the day is published."""
        self._check_day(day)
        with self._database.write() as connection:
            record.set_attempt_day(connection, self.id, day, gaps=json.dumps(list(lines)))

    def outdate(self, start: date, end: date, reason: str, cause: date | None = None) -> None:
        """Published days of start..end are stale once this attempt has published its day ``cause`` (its last
        one unless told otherwise): what they were built from has changed with it."""
        cause = cause or self.end
        self._check_day(cause)
        with self._database.write() as connection:
            stale.expect(connection, self._row, start, end, reason, cause=cause)

    def outdate_later(self, spark: SparkSession, contract: Table, names: Sequence[str] = ()) -> bool:
        """Mark all later days stale, once the last day is published, if the state they continue from changed.

        Compares the rows of the latest staged day with the published ones, in the columns ``names``, by
        default those of ``contract.carries_state``, or all. Call it after the table is staged. Reads two days
        at most. Returns whether the state changed.
        """
        staged = self._open_location(contract.name)
        with self._database.read() as connection:
            base = record.base_locations(connection, self.id)[contract.name]
        if staged == base:
            return False
        columns = list(names or contract.carries_state or contract.names)
        new, old = (self._left_behind(spark, location, columns) for location in (staged, base))
        if new is None and old is None:
            return False
        if new and old and new.exceptAll(old).isEmpty() and old.exceptAll(new).isEmpty():
            return False
        self.outdate(self.end + timedelta(days=1), date.max, f"{contract.name} of {self.end} changed")
        return True

    def _left_behind(self, spark: SparkSession, location: str, columns: list[str]) -> DataFrame | None:
        counted = rows_per_day(location, self.start, self.end)
        if not counted:
            return None
        table = spark.read.format("iceberg").load(location)
        return table.where(staging.span(max(counted), max(counted))).select(*columns)

    def counts(self) -> dict[str, dict[date, int]]:
        """Rows per table and day of start..end as staged (as pinned, once pinned), from metadata.

        Side tables are left out: a row there does not make a day.
        """
        contracts = self._contracts
        return {
            name: rows_per_day(location, self.start, self.end)
            for name, location in self.locations().items()
            if name in contracts and contracts[name].commit == "day"
        }

    def changed(self) -> dict[str, str]:
        """Tables that this attempt changed, with their staged metadata locations."""
        with self._database.read() as connection:
            base = record.base_locations(connection, self.id)
            pinned = record.pinned_locations(connection, self.id)
            staged = locations(connection, self.catalog, self.network)
        if pinned:
            return pinned
        return {name: at for name, at in staged.items() if at != base.get(name)}

    def locations(self) -> dict[str, str]:
        """Metadata locations of all tables as staged (as pinned, once pinned)."""
        with self._database.read() as connection:
            base = record.base_locations(connection, self.id)
        return base | self.changed()

    # -- Towards publishing --------------------------------------------------------------------------

    def pin(self) -> dict[str, str]:
        """Fix what audit judges and publish moves; returns the changed tables' metadata locations. A second
        pin of the same state changes nothing; of another state it drops the verdicts."""
        staged = self._open_locations()
        with self._database.write() as connection:
            record.pin(connection, self.id, staged)
        counted = self.counts()
        present = {day for per_day in counted.values() for day in per_day}
        with self._database.write() as connection:
            refused = record.refusals(connection, self.id)
            known = record.known_days(connection, self.network, self.start, self.end)
            judged = record.verdicts(connection, self.id)
            for day in sorted((present | known) - set(refused) - set(judged)):
                record.set_day(
                    connection,
                    self.network,
                    day,
                    built_at=now(),
                    run_id=self.run_id,
                    attempt_id=self.id,
                    refused=None,
                    audited=None,
                    failures=None,
                )
            return record.pinned_locations(connection, self.id)

    def days_with_rows(self) -> list[date]:
        """Days of start..end that hold rows in any staged table and are not refused."""
        refused = self.refused
        present = {day for per_day in self.counts().values() for day in per_day}
        return sorted(present - set(refused))

    def verdict(self, day: date, ok: bool, failures: list[str] | None = None) -> None:
        """What the audit says of a day as pinned; ``failures`` name the expectations, a line each."""
        self._check_day(day)
        said: dict[str, object] = {
            "audited": "passed" if ok else "failed",
            "failures": json.dumps([" ".join(line.split()) for line in failures or []]),
        }
        with self._database.write() as connection:
            record.set_attempt_day(connection, self.id, day, **said)
            record.set_day(connection, self.network, day, run_id=self.run_id, attempt_id=self.id, **said)

    def verdicts(self) -> dict[date, tuple[bool, list[str]]]:
        """What the audit said so far: day -> (ok, failures)."""
        with self._database.read() as connection:
            return record.verdicts(connection, self.id)

    def rest(self) -> None:
        """No more signs of life from this process; the lease stays until it expires or is released."""
        if self._heartbeat:
            self._heartbeat.stop()

    # -- Inside --------------------------------------------------------------------------------------

    def _check_day(self, day: date) -> None:
        if not self.start <= day <= self.end:
            raise PermalakeError(f"{day} does not belong to {self.network} {spell(self.start, self.end)}")

    def _open_locations(self) -> dict[str, str]:
        if not beat(self._database, self.network, self.run_id):
            raise self._gone()
        with self._database.read() as connection:
            staged = locations(connection, self.catalog, self.network)
        if not staged:
            raise self._gone()
        return staged

    def _open_location(self, table: str) -> str:
        staged = self._open_locations()
        if table not in staged:
            raise PermalakeError(f"{self.network}.{table} is no table of the lake")
        return staged[table]

    def _gone(self) -> PermalakeError:
        return PermalakeError(
            f"{self.network} {spell(self.start, self.end)}: the staging of run {self.run_id} was published "
            "or superseded meanwhile; run it again"
        )
