"""Days that are copied from publishers: where they are landed, and what they are compared with."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

import pyarrow.dataset as ds

from permalake.contracts import Table
from permalake.errors import PermalakeError
from permalake.intervals import dates
from permalake.lake import CarryAttempt, PinnedAttempt
from permalake.lake.staged_state import StagedState
from permalake.pipeline.jobs import StepContext
from permalake.transparency.differences import first_difference
from permalake.transparency.landed import LandedDay, LandedDays, news


def landed_days(context: StepContext) -> LandedDays | None:
    """Return where the days of a publisher are landed; None for a network with a source of its own."""
    work = context.work
    publishers = work.inputs.publishers
    if publishers is None:
        return None
    return LandedDays(work.settings, context.arguments.network, publishers, context.report)


def judge(context: StepContext, pinned: PinnedAttempt) -> None:
    """Withhold each day that passed its audit and is not what its publisher signed.

    The publisher is not asked for it again before it signs the day anew. A signed day without rows, which no
    audit judges, passes here: it is published as empty, and its record says so.
    """
    landed = landed_days(context)
    if landed is None:
        return
    verdicts = pinned.verdicts()
    without_rows = set(dates(pinned.start, pinned.end)) - set(pinned.days_with_rows()) - set(pinned.refused)
    empty = {day for day in without_rows - set(verdicts) if landed.day(day) is not None}
    for day in sorted({day for day, (passed, _) in verdicts.items() if passed} | empty):
        line = _difference(landed, day, context.work.domain.tables, pinned.staged)
        if line is None:
            if day in empty:
                pinned.verdict(day, True)
            continue
        context.report(f"{context.arguments.network} {day}: {line}")
        landed.refuse(day, line)
        pinned.verdict(day, False, [line])


def _difference(
    landed: LandedDays, day: date, tables: Mapping[str, Table], staged: StagedState, kind: str = "day"
) -> str | None:
    signed = landed.day(day)
    if signed is None:
        return "no publisher's day was landed for it; build it from the first step"
    return compared(signed, tables, staged, kind)


def compared(signed: LandedDay, tables: Mapping[str, Table], staged: StagedState, kind: str) -> str | None:
    """Return how the staged tables of a day first differ from what was signed; None: not at all."""

    def rows(name: str) -> ds.Dataset:
        return staged.rows(name, signed.date, signed.date).scan()

    try:
        return first_difference(signed, tables, kind, rows)
    except PermalakeError as error:
        return str(error)


def carried_difference(context: StepContext, attempt: CarryAttempt) -> str | None:
    """Return how the carried tables first differ from what the publisher signed, in a line; None: not at all.

    They tell the state since a lake's first day, so that they are compared where all of the publisher's
    earlier days are copied, none of which it has signed anew since.
    """
    landed = landed_days(context)
    publishers = context.work.inputs.publishers
    if landed is None or publishers is None:
        return None
    network = context.arguments.network
    copied = {day.date: day.notes for day in context.work.reader.status(network) if day.published}
    changed = news(publishers, network, copied, context.report)
    try:
        now = landed.land(attempt.start, attempt.end, (), force=True, keep=False)
    except PermalakeError as error:
        context.report(f"carry {network}: not compared with the publisher's carried tables: {error}")
        return None
    for day in attempt.published_days:
        signed, earlier = now.get(day), sum(other < day for other in copied)
        if signed is None or any(changed_day <= day for changed_day in changed) or signed.earlier != earlier:
            context.report(
                f"carry {network}: the carried tables from {day} on are not compared with the publisher's: "
                "this lake does not hold all of its earlier days as they are signed now"
            )
            return None
        if line := compared(signed, context.work.domain.tables, attempt.staged, "carried"):
            return line
    return None
