"""Verifies VAAs and writes the tables of events inside Spark's tasks.

A message that no table can be made of, whatever the exception, goes to quarantine as ``undecodable``; the
others are published.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from permalake.contracts.reason_codes import MessageReason
from permalake.errors import PermalakeError, line_of
from permalake.lake.task_files import FileTarget
from permalake.pipeline.landing import TaskOutput
from permalake.wormhole.contracts.tables import MESSAGE_PUBLICATION
from permalake.wormhole.reference import Reference, load_reference
from permalake.wormhole.tables.copies import distinct_vaas, message_places, of_days
from permalake.wormhole.tables.documents import whole_messages
from permalake.wormhole.tables.event_tables import CHAIN_MESSAGES, chain_messages, event_tables
from permalake.wormhole.tables.verified_vaas import ELSEWHERE, REFUSED, verified

REFUSED_VAAS, CONFLICTS, COUNTS = "refused_vaas", "conflicts_elsewhere", "chain_messages"
LANDED = {REFUSED_VAAS: REFUSED, CONFLICTS: ELSEWHERE, COUNTS: CHAIN_MESSAGES}
"""Schemas of what is landed, by name."""
_LOG = logging.getLogger(__name__)
UNDECODABLE: MessageReason = "undecodable"
_PUBLICATION = MESSAGE_PUBLICATION.name
# If so many are, and more than are not, a day without them would be a fault of ours.
_FEW_UNDECODABLE = 100


@dataclass(frozen=True)
class EventRows:
    """The output for whole messages: rows of ``tables`` by name, and rows ``landed`` by name."""

    tables: Mapping[str, pa.Table]
    landed: Mapping[str, pa.Table]


@dataclass(frozen=True)
class EventWriter:
    """A task's work on the documents of the days ``start..end``, which come sorted by ``message``.

    ``reference`` is the directory of additional reference data, ``landing`` the folder of what is landed,
    ``file_io`` are the properties of the access to object storage.
    """

    targets: tuple[FileTarget, ...]
    landing: str
    start: dt.date
    end: dt.date
    reference: Path | None
    file_io: Mapping[str, str]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the tables; return the record of it (:data:`~permalake.pipeline.landing.LANDED_RECORD`)."""
        reference = load_reference(self.reference)
        output = TaskOutput(self.targets, self.landing, LANDED, self.file_io)
        targets = {target.table: target for target in self.targets}
        published = undecodable = 0
        for group in whole_messages(batches):
            candidates = of_days(distinct_vaas(group), self.start, self.end)
            for rows in event_rows(candidates, reference, targets):
                published += rows.tables[_PUBLICATION].num_rows if rows.tables else 0
                undecodable += 0 if rows.tables else rows.landed[REFUSED_VAAS].num_rows
                for name, made in rows.tables.items():
                    output.add(name, made)
                for name, made in rows.landed.items():
                    output.land(name, made)
        if undecodable > max(published, _FEW_UNDECODABLE):
            raise PermalakeError(
                f"{undecodable} VAAs are undecodable, which is no fault of theirs: report it with the log"
            )
        yield output.close()


def event_rows(
    candidates: pa.Table, reference: Reference, targets: Mapping[str, FileTarget]
) -> Iterator[EventRows]:
    """Yield the rows of whole messages (of :func:`~permalake.wormhole.tables.copies.of_days`).

    When something raises, the messages are halved until the one that it raises for is alone.
    """
    if not candidates.num_rows:
        return
    try:
        yield _rows(candidates, reference, targets)
    except (MemoryError, OSError):
        raise  # says nothing of a message
    except Exception as error:  # noqa: BLE001
        message = message_places(candidates["message"])
        if message[-1] == 0:
            _LOG.warning("%s is undecodable", candidates["message"][0], exc_info=error)
            yield _undecodable(candidates, error)
            return
        cut = int((message <= message[-1] // 2).sum())
        yield from event_rows(candidates.slice(0, cut), reference, targets)
        yield from event_rows(candidates.slice(cut), reference, targets)


def _rows(candidates: pa.Table, reference: Reference, targets: Mapping[str, FileTarget]) -> EventRows:
    verdicts = verified(candidates, reference)
    tables = {name: targets[name].checked(rows) for name, rows in event_tables(verdicts)}
    counts = chain_messages(verdicts)
    return EventRows(tables, {REFUSED_VAAS: verdicts.refused, CONFLICTS: verdicts.elsewhere, COUNTS: counts})


def _undecodable(candidates: pa.Table, error: Exception) -> EventRows:
    """Return the quarantine rows of one message, and its count for the chain that its bytes show."""
    rows = candidates.filter(candidates["in_range"])
    reasons = {"reason": UNDECODABLE, "detail": line_of(error)[:200]}
    columns = {
        name: pa.repeat(reasons[name], len(rows)) if name in reasons else rows[name] for name in REFUSED.names
    }
    shown = rows.filter(pc.is_valid(rows["identity"]))
    chain = pc.list_element(pc.split_pattern(shown["identity"], "/", max_splits=1), 0)
    counts = {"date": shown["date"], "emitter_chain": chain.cast(pa.int32())}
    counts |= {"messages": pa.repeat(1, len(shown)), "verified": pa.repeat(0, len(shown))}
    return EventRows(
        {},
        {
            REFUSED_VAAS: pa.table(columns).select(REFUSED.names).cast(REFUSED),
            COUNTS: pa.table(counts).cast(CHAIN_MESSAGES),
        },
    )
