"""The lines that a run prints about itself."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from permalake.contracts.steps import CARRY, StepResult
from permalake.lake.step_ledger import StepKey, StepRow
from permalake.sanitize import LONGEST_MESSAGE, shown


class RunReport:
    """Turns what the ledger says of a run's steps into lines on standard output.

    :param title: what is built, for example ``iota_daily shimmer 2022-09-28``
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self._begun: set[StepKey] = set()
        self._ended: set[StepKey] = set()
        self._served: dict[str, int] = {}
        self._left_out = ""
        self._rows: dict[str, int] = {}
        self._days: int | None = None

    def say(self, text: str) -> None:
        """Print a line about the run as a whole."""
        _line(f"{self.title}: {text}")

    def follow(self, rows: Iterable[StepRow]) -> None:
        """Print a line for each step that has begun since the last call, and for each that has ended."""
        for row in rows:
            if row.key not in self._begun:
                self._begun.add(row.key)
                _line(f"  {row.key.step:<16} …")
            if row.result.state != "running" and row.key not in self._ended:
                self._ended.add(row.key)
                self._show(row.key.step, row.result)

    def leave_out(self, step: str, reason: str) -> None:
        """Print why there is nothing to do for a step."""
        self._left_out = reason
        _line(f"  {step:<16} left out: {reason}")

    def failure(self, step: str, result: StepResult) -> str:
        """Return the line with which a run ends that fails at ``step``."""
        published = "published, but " if self._days else ""
        return f"{self.title}: {published}{step}: {result.failure}"

    def close(self, seconds: float, *, unchanged: bool) -> None:
        """Print the last line of a run that succeeded; ``unchanged``: it found the days published."""
        rows = sum(self._rows.values())
        if self._served and self._days is None:
            self.say(f"{self._given()} in {seconds:.0f} s")
        elif unchanged:
            self.say("published meanwhile, and unchanged; --force builds it again")
        elif self._left_out and self._days is None:
            self.say(self._left_out)
        elif not rows:
            self.say(f"no rows in these days; published as empty in {seconds:.0f} s")
        else:
            self.say(f"{_count(self._days or 0)}, {rows} rows published in {seconds:.0f} s")

    def _show(self, step: str, result: StepResult) -> None:
        if result.state == "done" or result.days:
            _line(f"  {step:<16} {result.seconds:6.1f} s{self._outcome(step, result)}")
        if result.state != "done":
            _line(f"  {step:<16} failed after {result.seconds:.1f} s")

    def _outcome(self, step: str, result: StepResult) -> str:
        if result.served:
            self._served = dict(result.served)
            return f"  {self._given()}"
        if result.days is not None:
            if step == CARRY:
                return f"  {_count(len(result.days))} carried"
            self._days, self._rows = len(result.days), dict(result.rows)
            return f"  {_count(len(result.days))} published"
        new = {
            table: count for table, count in result.rows.items() if count and self._rows.get(table) != count
        }
        self._rows = dict(result.rows)
        return "".join(
            f"{'  ' if not number else ', '}{table} {count}"
            for number, (table, count) in enumerate(new.items())
        )

    def _given(self) -> str:
        return ", ".join(f"{_count(days)} into {store}" for store, days in self._served.items())


def _count(days: int) -> str:
    return f"{days} {'day' if days == 1 else 'days'}"


def _line(text: str) -> None:
    sys.stdout.write(shown(text, LONGEST_MESSAGE) + "\n")
    sys.stdout.flush()
