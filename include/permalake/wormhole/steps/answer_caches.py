"""What external services answered, as a step reads and adds to it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

from permalake.contracts import Table
from permalake.lake import Attempt, CarryAttempt
from permalake.wormhole.enrich.chains import AnswerCache


def answer_cache(
    attempt: Attempt | CarryAttempt, table: Table, remark: Callable[[str, date | None], None]
) -> AnswerCache:
    """Return the access of an attempt to a table of answers; ``remark`` notes what nobody answered."""
    return AnswerCache(
        read=lambda session: attempt.table(session, table.name),
        add=lambda rows: attempt.append_new(rows, table),
        remark=remark,
    )
