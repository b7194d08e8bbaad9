"""The attestations that count on some days: the state of the latest sound day before, and all since."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Protocol

from permalake.engine.rows import Relation
from permalake.lake.staged_tables import StagedTables
from permalake.pipeline.relations import QueryRunner
from permalake.wormhole.contracts.tables import ASSET_META_PAYLOAD, ATTESTED_TOKENS, MESSAGE_PUBLICATION
from permalake.wormhole.tables import attested_tokens as made

_BEGINNING = date(1969, 12, 31)
"""The day before all days: a VAA without a time is of 1970-01-01."""


class DayTables(Protocol):
    """Tables by days: history as published, and the days that are being built."""

    def rows(self, name: str, first: date, last: date) -> Relation:
        """Return the rows of a table of the days ``first..last``."""
        ...

    def latest_before(self, name: str, day: date) -> date | None:
        """Return the latest day before ``day`` of which a table has rows."""
        ...


@dataclass(frozen=True)
class StagedDays:
    """The tables of an attempt."""

    attempt: StagedTables

    def rows(self, name: str, first: date, last: date) -> Relation:
        """Return the rows of a table of the days ``first..last``."""
        return self.attempt.staged.rows(name, first, last).scan()

    def latest_before(self, name: str, day: date) -> date | None:
        """Return the latest day before ``day`` of which a table has rows."""
        return self.attempt.staged.latest_before(name, day)


def attested_records(
    runner: QueryRunner, tables: DayTables, start: date, end: date, sound_before: date
) -> Relation:
    """Return rows of ``attested_tokens``: the tokens attested by the end of each day of ``start..end``.

    Args:
        runner: Runs the query.
        tables: History, and the days that are being built.
        start: First day.
        end: Last day.
        sound_before: The carried ``attested_tokens`` of days before it can be trusted: the first day that
            waits to be carried, or the first one of the range.
    """
    state = tables.latest_before(ATTESTED_TOKENS.name, sound_before)
    since = (state or _BEGINNING) + timedelta(days=1)
    given: Mapping[str, Relation] = {
        made.STATE: tables.rows(ATTESTED_TOKENS.name, state, state)
        if state
        else ATTESTED_TOKENS.nullable.empty_table(),
        **{
            name: tables.rows(name, since, end)
            for name in (ASSET_META_PAYLOAD.name, MESSAGE_PUBLICATION.name)
        },
    }
    query = (
        f"SELECT * FROM ({made.ATTESTED_TOKENS}) AS every WHERE date BETWEEN DATE '{start}' AND DATE '{end}'"
    )
    return runner.results(
        {ATTESTED_TOKENS.name: query}, {ATTESTED_TOKENS.name: ATTESTED_TOKENS.arrow}, given
    )[ATTESTED_TOKENS.name]
