"""Looks at a lake from outside, to kill a run at a chosen moment."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import psutil


class Watch:
    """The state of an attempt, read from the catalog database and the warehouse."""

    def __init__(self, warehouse: Path) -> None:
        self.warehouse = warehouse
        self._known = set(self._attempts())

    def _ask(self, sql: str, *values: str) -> list[tuple]:
        database = self.warehouse / "catalog.db"
        if not database.exists():
            return []
        connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=5)
        try:
            return connection.execute(sql, values).fetchall()
        except sqlite3.OperationalError:  # the tables are not there yet, or somebody commits just now
            return []
        finally:
            connection.close()

    def _attempts(self) -> list[str]:
        return [row[0] for row in self._ask("select attempt_id from permalake_attempts order by begun_at")]

    @property
    def attempt(self) -> str | None:
        """The attempt that began since this watch."""
        new = [attempt for attempt in self._attempts() if attempt not in self._known]
        return new[-1] if new else None

    def staged(self) -> set[str]:
        """Tables that the attempt has changed so far."""
        rows = self._ask(
            "select t.table_name from iceberg_tables t join permalake_attempt_tables a"
            " on a.attempt_id = t.catalog_name and a.table_name = t.table_name"
            " where t.catalog_name = ? and t.metadata_location <> a.base_location",
            self.attempt or "",
        )
        return {row[0] for row in rows}

    def landing(self, name: str) -> bool:
        """Whether the landing folder holds ``name``."""
        return bool(self.attempt) and (self.warehouse / "_attempts" / str(self.attempt) / name).exists()

    def pinned(self) -> bool:
        """Whether the audit has fixed what it judges."""
        sql = "select 1 from permalake_attempts where attempt_id = ? and pinned_at is not null"
        return bool(self._ask(sql, self.attempt or ""))

    def judged(self) -> bool:
        """Whether the audit has given a verdict."""
        sql = "select 1 from permalake_attempt_days where attempt_id = ? and audited is not null"
        return bool(self._ask(sql, self.attempt or ""))


# Every step of an IOTA day: its beginning, its middle, and the gaps between steps.
POINTS: dict[str, Callable[[Watch], bool]] = {
    "ingest begun": lambda watch: watch.attempt is not None,
    "landing under way": lambda watch: watch.landing("."),
    "landed": lambda watch: watch.landing("landed.json"),
    "first table staged": lambda watch: len(watch.staged()) >= 1,
    "half of the tables staged": lambda watch: len(watch.staged()) >= 5,
    "decoded, analytics not begun": lambda watch: {"milestones", "messages", "tags"} <= watch.staged(),
    "analytics half done": lambda watch: bool({"ms_analytics", "date_cache"} & watch.staged()),
    "analytics done": lambda watch: {"ms_analytics", "daily_analytics", "daily_extended"} <= watch.staged(),
    "audit under way": Watch.pinned,
    "judged, not published": Watch.judged,
}


def wait_for(
    point: Callable[[Watch], bool], watch: Watch, process: psutil.Popen, seconds: float = 900
) -> bool:
    """Until ``point`` is reached; False when the run ended before."""
    give_up = time.monotonic() + seconds
    while time.monotonic() < give_up:
        if point(watch):
            return True
        if process.poll() is not None:
            return False
        time.sleep(0.01)
    raise TimeoutError("the run neither reached the point nor ended")


def family(pid: int) -> list[psutil.Process]:
    """A process and all below it."""
    parent = psutil.Process(pid)
    return [parent, *parent.children(recursive=True)]


def kill(processes: list[psutil.Process]) -> None:
    """SIGKILL, all of them, and wait until they are gone."""
    for process in processes:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(processes, timeout=20)
