"""Problems that the cone found: queries over them, and the days that they keep unpublished."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

from permalake.contracts.reason_codes import ConeReason
from permalake.iota.cone.decoded import Row
from permalake.iota.cone.source_records import MilestoneDay

# Causes before consequences: a spoilt block is named before the parents that are missing because of it.
_CAUSES_FIRST: tuple[ConeReason, ...] = (
    "malformed",
    "id_mismatch",
    "milestone_conflict",
    "milestone_signature",
)
_RANK = " ".join(f"WHEN '{reason}' THEN {place}" for place, reason in enumerate(_CAUSES_FIRST))
_PROBLEMS = f"FROM problems WHERE kind = {int(Row.PROBLEM)}"

FIRST_CAUSES = f"""
SELECT date, problems, milestone_index, reason, detail FROM (
    SELECT date, milestone_index, reason, detail, count(*) OVER (PARTITION BY date) AS problems,
        row_number() OVER (
            PARTITION BY date
            ORDER BY milestone_index, CASE reason {_RANK} ELSE {len(_CAUSES_FIRST)} END, reason, detail
        ) AS place
    {_PROBLEMS} AND breaks
) AS every WHERE place = 1
"""
"""The query of the first problem of each day that breaks it, with the number of them."""

DISAGREEMENTS = f"""
SELECT date, count(*) AS transactions {_PROBLEMS} AND reason = 'conflict_disagreement' GROUP BY date
"""
"""The query of how many transactions of a day have another outcome recomputed than by the source."""


def rejected(source: str) -> str:
    """Return the query of rows of the ``quarantine`` table; ``source`` is the name of the source's class."""
    return f"""
SELECT '{source}' AS source, origin, reason, raw, date, min(detail) AS detail FROM (
    SELECT concat_ws(' ', nullif(origin, ''), 'milestone ' || milestone_index) AS origin, reason, raw, date,
        detail {_PROBLEMS}
) AS every GROUP BY origin, reason, raw, date
"""


def refused_days(first_causes: Iterable[Mapping[str, Any]], days: Iterable[MilestoneDay]) -> dict[date, str]:
    """Return the days that do not hold, each with its first cause as one line.

    ``first_causes``: rows of :data:`FIRST_CAUSES`.
    """
    torn = {day.date: day.fault or _gap_line(day) for day in days if day.fault or day.gaps}
    broken = {row["date"]: _line(row) for row in first_causes}
    return dict(sorted((broken | torn).items()))


def _line(cause: Mapping[str, Any]) -> str:
    more = f" (and {cause['problems'] - 1} more)" if cause["problems"] > 1 else ""
    return f"milestone {cause['milestone_index']}: {cause['reason']}: {cause['detail']}{more}"


def _gap_line(day: MilestoneDay) -> str:
    ranges = ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in day.gaps)
    return f"milestone {day.gaps[0][0]}: milestone_gap: the source lacks milestones {ranges} of {day.date}"
