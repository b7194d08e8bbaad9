"""Findings of an audit, and their wording."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from permalake.audit.suite import CRITICAL, Severity

LAWS = "laws"
_LONGEST_VALUE = 140
_IN_FULL = 3
"""Failures that a summary tells in full."""


@dataclass(frozen=True)
class Finding:
    """The outcome of one expectation.

    Attributes:
        days: Failing rows per day. Empty for a failure without a day (a column is missing, the expectation
            could not be computed): every audited day fails then.
        sample: Some of the failing rows.
        error: Why the expectation could not be computed.
    """

    table: str
    name: str
    text: str
    severity: Severity
    ok: bool
    count: int = 0
    days: dict[date, int] = field(default_factory=dict)
    sample: tuple[dict[str, Any], ...] = ()
    error: str | None = None

    @property
    def is_failure(self) -> bool:
        """Whether it withholds a day. An expectation that cannot be computed always does."""
        return not self.ok and (self.severity == CRITICAL or self.error is not None)

    @property
    def is_warning(self) -> bool:
        """Whether it is reported only, and the day published."""
        return not self.ok and not self.is_failure

    def fails(self, day: date) -> bool:
        """Return whether it withholds this day."""
        return self.is_failure and (not self.days or day in self.days)

    def line(self, day: date | None = None) -> str:
        """Return the finding in one line, with a failing row as example (of ``day`` where given).

        For example ``ms_analytics: messages_add_up: milestone 17339 expected 38, found 37``.
        """
        rows = [row for row in self.sample if day is None or row.get("date") in (None, day.isoformat())]
        count = self.count if day is None else self.days.get(day, self.count)
        first = self.error or (row_text(rows[0]) if rows else self.text)
        more = f" (and {count - 1} more)" if count > 1 and not self.error else ""
        return f"{self.table}: {self.name}: {first}{more}"


@dataclass(frozen=True)
class AuditReport:
    """The findings of an audit of ``days``."""

    days: tuple[date, ...]
    findings: tuple[Finding, ...]

    def failures(self, day: date) -> list[str]:
        """Return a line per expectation that withholds the day."""
        return [finding.line(day) for finding in self.findings if finding.fails(day)]

    def warned(self, day: date) -> list[str]:
        """Return a line per expectation that is not met and lets the day pass."""
        return [finding.line(day) for finding in self.warnings if not finding.days or day in finding.days]

    @property
    def passed(self) -> list[date]:
        """Days that may be published."""
        return [day for day in self.days if not self.failures(day)]

    @property
    def failed(self) -> list[Finding]:
        """Findings that withhold days."""
        return [finding for finding in self.findings if finding.is_failure]

    @property
    def warnings(self) -> list[Finding]:
        """Findings that are reported only."""
        return [finding for finding in self.findings if finding.is_warning]

    def summary(self) -> str:
        """Return the failures in one line, the first of them in full."""
        lines = [finding.line() for finding in self.failed]
        more = f"; {len(lines) - _IN_FULL} more" if len(lines) > _IN_FULL else ""
        return "; ".join(lines[:_IN_FULL]) + more

    @property
    def dateless(self) -> list[Finding]:
        """Failures that do not name a day."""
        return [finding for finding in self.failed if not finding.days]


def row_text(row: dict[str, Any]) -> str:
    """Return a failing row as text."""
    values = {name: value for name, value in row.items() if name != "date"}
    if {"expected", "found"} <= set(values):
        place = " ".join(str(v) for k, v in values.items() if k not in ("expected", "found"))
        return f"{place} expected {values['expected']}, found {values['found']}".strip()
    return ", ".join(f"{name} {shorten(value)}" for name, value in values.items()) or "a row"


def shorten(value: Any) -> str:
    """Return a value as text of limited length."""
    text = "null" if value is None else str(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def merge(reports: Iterable[AuditReport]) -> list[Finding]:
    """Return one finding per expectation from reports of different days."""
    merged: dict[tuple[str, str], Finding] = {}
    for report in reports:
        for finding in report.findings:
            key = (finding.table, finding.name)
            merged_finding = merged.get(key)
            if merged_finding is None or merged_finding.ok:
                merged[key] = finding
            elif not finding.ok:
                merged[key] = Finding(
                    *(finding.table, finding.name, finding.text, finding.severity, False),
                    count=merged_finding.count + finding.count,
                    days=merged_finding.days | finding.days,
                    sample=merged_finding.sample + finding.sample,
                    error=merged_finding.error or finding.error,
                )
    return list(merged.values())


def one_line(error: BaseException | str) -> str:
    """Return the first line of an error, with its type."""
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return first[:300] if isinstance(error, str) else f"{type(error).__name__}: {first}"[:300]
