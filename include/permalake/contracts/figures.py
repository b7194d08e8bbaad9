"""Declarations for a network's pages: figures of its card, charts of its days, and its open requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Unit = Literal["count", "tokens", "usd", "bytes"]


@dataclass(frozen=True)
class HeadlineFigure:
    """A figure of a network's card: ``sql`` is an aggregate over all days of ``table``.

    ``valued``: the aggregate that counts the rows which the figure covers, where it may be less than all.
    """

    label: str
    table: str
    sql: str
    unit: Unit = "count"
    valued: str | None = None


@dataclass(frozen=True)
class DailyChart:
    """A chart with a value per day and series.

    Attributes:
        series: Label and aggregate over a day's rows of ``table``.
        parts: Whether the series add up, and are stacked.
        running: Whether the figures count from ``since_milestone`` of ``table`` on: where that is not null,
            they are differences to the ledger before.
        note: What a reader has to know of the figures.
    """

    title: str
    table: str
    series: tuple[tuple[str, str], ...]
    unit: Unit = "count"
    parts: bool = False
    running: bool = False
    note: str = ""

    @property
    def sql(self) -> str:
        """The statement behind the chart, with ``$first`` and ``$last``."""
        values = ", ".join(f'{sql} AS "{label}"' for label, sql in self.series)
        return (
            f"SELECT date, {values} FROM {self.table} "  # noqa: S608
            "WHERE date BETWEEN $first AND $last GROUP BY date ORDER BY date"
        )


@dataclass(frozen=True)
class OpenRequests:
    """Requests to services that have no answer yet.

    ``sql``: over ``table``, at most 50 rows of ``what`` and ``reason`` (text), ``requests`` (how many), and
    ``first`` and ``last`` (days).
    """

    title: str
    doc: str
    table: str
    sql: str
