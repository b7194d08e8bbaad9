"""The lines that a run prints about itself."""

from __future__ import annotations

import sys
from typing import Any

from permalake.contracts.steps import CARRY
from permalake.hostile_text import LONGEST_MESSAGE, shown


class RunReport:
    """Turns the events of a run into lines on standard output.

    :param title: what is built, for example ``iota_daily shimmer 2022-09-28``
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self.failure = ""
        self.exit_code = 1
        self.unchanged = False
        self._served: dict[str, int] = {}
        self._left_out = ""
        self._rows: dict[str, int] = {}
        self._days: list[str] | None = None

    def say(self, text: str) -> None:
        """Print a line about the run as a whole."""
        _line(f"{self.title}: {text}")

    def show(self, event: dict[str, Any]) -> None:
        """Print a line about one step: it starts, waits, is done with its rows, or failed and why."""
        step = event["step"]
        if event["event"] == "waiting":
            self.say(f"waiting: {event['reason']}")
        elif event["event"] == "unchanged":
            self.unchanged = True
        elif event["event"] == "skipped":
            self._left_out = event["reason"]
            _line(f"  {step:<16} left out: {event['reason']}")
        elif event["event"] == "start":
            _line(f"  {step:<16} …")
        elif event["event"] == "failed":
            published = "published, but " if self._days else ""
            self.failure = f"{published}{step}: {event['reason']}"
            self.exit_code = event.get("exit_code", 1)
            _line(f"  {step:<16} failed after {event['seconds']:.1f} s")
        else:
            _line(f"  {step:<16} {event['seconds']:6.1f} s{self._outcome(event)}")

    def close(self, seconds: float) -> None:
        """Print the last line of a run that succeeded."""
        rows = sum(self._rows.values())
        if self._served and self._days is None:
            self.say(f"{self._given()} in {seconds:.0f} s")
        elif self.unchanged:
            self.say("published meanwhile, and unchanged; --force builds it again")
        elif self._left_out and self._days is None:
            self.say(self._left_out)
        elif not rows:
            self.say(f"no rows in these days; published as empty in {seconds:.0f} s")
        else:
            self.say(f"{_count(len(self._days or ()))}, {rows} rows published in {seconds:.0f} s")

    def _outcome(self, event: dict[str, Any]) -> str:
        if served := event.get("served"):
            self._served = served
            return f"  {self._given()}"
        if (days := event.get("days")) is not None:
            if event["step"] == CARRY:
                return f"  {_count(len(days))} carried"
            self._days, self._rows = days, event["rows"]
            return f"  {_count(len(days))} published"
        rows = event.get("rows") or {}
        new = {table: count for table, count in rows.items() if count and self._rows.get(table) != count}
        self._rows = rows
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
