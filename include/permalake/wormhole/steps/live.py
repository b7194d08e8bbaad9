"""Following VAAs and observations: verified and decoded on arrival, as days are, into the live head.

A document may come twice: its message is judged again together with what the head has of it, so that a
repeated batch changes nothing.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from permalake.contracts import QUARANTINE
from permalake.lake.catalog import ensure
from permalake.lake.day_rows import DayRows
from permalake.lake.head import Head, rows_among
from permalake.lake.head_edit import published_among
from permalake.lake.head_position import Reached, last_reached
from permalake.lake.task_files import WrittenFile
from permalake.pipeline import alerts
from permalake.pipeline.live import Advance
from permalake.pipeline.workspace import Workspace
from permalake.wormhole.codec.vaa import GENESIS
from permalake.wormhole.contracts import WORMHOLE_TABLES
from permalake.wormhole.contracts.tables import OBSERVATIONS, TOKEN_PRICES, TOKEN_TRANSFER_DETAILS
from permalake.wormhole.contracts.waiting import HEAD_TABLES, WAITING_OBSERVATIONS
from permalake.wormhole.enrich.asked_prices import AskedPrices
from permalake.wormhole.enrich.head_details import HeadDetails
from permalake.wormhole.enrich.price_service import PriceCache
from permalake.wormhole.events.head_events import HeadEvents
from permalake.wormhole.reference import load_reference
from permalake.wormhole.sources.growing_observations import POSITION, growing_observations
from permalake.wormhole.sources.growing_vaas import growing_source
from permalake.wormhole.sources.wormhole_source import section
from permalake.wormhole.steps.event_writer import REFUSED_VAAS, event_rows
from permalake.wormhole.steps.published_messages import PublishedMessages
from permalake.wormhole.tables.copies import distinct_vaas, of_days
from permalake.wormhole.tables.documents import COLUMNS, identified, identities
from permalake.wormhole.tables.event_tables import EVENT_TABLES
from permalake.wormhole.tables.head_changes import HeadChanges, changes, quarantine_rows, without
from permalake.wormhole.tables.head_observations import (
    OBSERVED,
    ObservationChanges,
    dated,
    observation_changes,
)
from permalake.wormhole.tables.observations import signed_messages
from permalake.wormhole.tables.signed_documents import DOCUMENT, quarantined_documents, signed_documents
from permalake.wormhole.tables.verified_vaas import CONFLICT, REFUSED

_DETAILS = TOKEN_TRANSFER_DETAILS.name
_OBSERVATIONS, _WAITING = OBSERVATIONS.name, WAITING_OBSERVATIONS.name
_TABLES = (*EVENT_TABLES, _DETAILS)
"""Tables with rows of a message that follow from its VAA."""
LIVE_TABLES = (*_TABLES, _OBSERVATIONS, QUARANTINE.name)
_PUBLICATION, _QUORUM = "message_publication", "quorum_state"
_TRANSFERS, _METAS = "token_transfer_payload", "asset_meta_payload"
_LOG = logging.getLogger(__name__)
_NO_DOCUMENT = pa.RecordBatch.from_pylist([], schema=DOCUMENT)


def follow(work: Workspace, spark: SparkSession, run_id: str) -> WormholeHead:
    """Open the source of VAAs and the head."""
    return WormholeHead(work, spark, run_id)


class WormholeHead:
    """The head of Wormhole that follows its source, batch by batch."""

    def __init__(self, work: Workspace, spark: SparkSession, run_id: str) -> None:
        contracts = {name: WORMHOLE_TABLES[name] for name in LIVE_TABLES} | HEAD_TABLES
        ensure(work.settings, work.database, work.network, work.domain.tables)
        self.head = Head(work.settings, work.database, work.network, contracts)
        self.head.ensure()
        self._work = work
        self._section = section(work.settings)
        self._reference = load_reference(self._section.reference)
        self._source = growing_source(spark, work.settings, self._section)
        self._observed = growing_observations(spark, work.settings, self._section)
        cache = PriceCache(
            quotes=lambda first, last: DayRows(self._locations()[TOKEN_PRICES.name], first, last).scan(),
            keep=lambda _: 0,
            asked=partial(AskedPrices, work.database),
            note=_LOG.debug,
        )
        alert = partial(alerts.store_behind, f"{work.domain.name}_live", run_id, work.network)
        self._events = HeadEvents(work.settings, work.database, self.head, alert)
        self._published = PublishedMessages(self.head)
        self._values = HeadDetails(work.settings, self._locations, cache)

    def _locations(self) -> Mapping[str, str]:
        return self._work.reader.locations(self._work.network)

    def finish(self) -> None:
        """Do nothing: a batch is written into Bigtable before the next one begins."""

    def close(self) -> None:
        """Let go of the source."""
        self._source.close()
        self._values.close()

    def advance(self) -> Advance | None:
        """Add the VAAs and observations that have come since; None if there are none."""
        before = last_reached(self._work.database, self._work.network)
        read = dict((before.source if before else None) or {})
        seen = read.pop(POSITION, {})
        news, observed = self._source.news(before), self._observed.news(seen)
        if news is None and observed is None:
            self._events.send(is_longer=False)
            return None
        position = {**(news.position if news else read), POSITION: (observed and observed.position) or seen}
        documents, rows = news.documents if news else None, observed.rows if observed else None
        added = self._add(documents, rows, before, position)
        self._source.keep()
        self._observed.keep()
        self._events.send(is_longer=True)
        return added

    def _add(
        self,
        documents: DataFrame | None,
        received: DataFrame | None,
        before: Reached | None,
        position: Mapping[str, Any],
    ) -> Advance:
        arrived, newest = self._arrived(documents, before)
        oldest = newest - timedelta(days=self._work.settings.live.days - 1)
        change, refused = self._message_changes(arrived, oldest)
        observed = self._observation_changes(received, change, newest)
        gone = {**dict.fromkeys(_TABLES, change.gone), _OBSERVATIONS: observed.gone}
        kept, replaced = self._without(gone)
        replaced[_WAITING] = {file.file_path for file in self.head.files(_WAITING)}
        gained = {
            **change.added,
            _DETAILS: self._details(change),
            _OBSERVATIONS: observed.added,
            _WAITING: observed.waiting,
            QUARANTINE.name: self._news_of_quarantine(refused, observed.refused),
        }
        added = [*kept, *(file for name, rows in gained.items() for file in self.head.write(name, rows))]
        now = datetime.now(UTC)
        times = change.messages.filter(pc.less_equal(change.messages["timestamp"], pa.scalar(now)))
        last = pc.max(times["timestamp"]).as_py()
        seconds = [int(last.timestamp())] if last else []
        seconds += [before.timestamp] if before else []
        midnight = datetime(newest.year, newest.month, newest.day, tzinfo=UTC)
        timestamp = max(seconds, default=int(midnight.timestamp()))
        self.head.commit(added, replaced, oldest, Reached(None, timestamp, position))
        counts = [f"{len(change.messages)} VAAs"]
        counts += [f"{len(observed.added)} observations"] if received is not None else []
        counts.append(f"{len(gained[QUARANTINE.name])} refused")
        return Advance(", ".join(counts), timestamp)

    def _observation_changes(
        self, received: DataFrame | None, change: HeadChanges, newest: date
    ) -> ObservationChanges:
        """Judge the observations that have come, and those that waited for VAAs that have."""
        arrived = OBSERVED.empty_table()
        if received is not None:
            arrived = dated(received.toArrow(), newest, datetime.now(UTC).date())
        waiting = self.head.rows(_WAITING).to_table().cast(OBSERVED)
        named = pc.unique(arrived["row_key"])
        held = self._rows(_OBSERVATIONS, pa.array({*named.to_pylist(), *change.gone}, pa.string()))
        message_tables = []
        for name in (_PUBLICATION, _QUORUM):
            gained = change.added[name]
            others = self._without_gone(self._rows(name, named), change)
            message_tables.append(pa.concat_tables([others.cast(gained.schema), gained]))
        return observation_changes(
            pa.concat_tables([arrived, waiting]),
            held,
            signed_messages(*message_tables),
            self._reference.guardian_sets,
        )

    def _news_of_quarantine(self, *refused: pa.Table) -> pa.Table:
        every_refused = pa.concat_tables(refused)
        return quarantine_rows(every_refused, self.head.rows(QUARANTINE.name), datetime.now(UTC))

    def _arrived(self, documents: DataFrame | None, before: Reached | None) -> tuple[pa.Table, date]:
        """Return the documents of days that the head may hold, and the newest of its days."""
        today = datetime.now(UTC).date()
        reached = datetime.fromtimestamp(before.timestamp, UTC).date() if before else None
        present = max((day for day in (reached, self.head.newest_published()) if day), default=None)
        if documents is None:
            return pa.Table.from_batches(identities([_NO_DOCUMENT])), min(present or today, today)
        arrived = identified(documents).select(*COLUMNS)
        if present is not None:
            # The newest day only moves on, so that its bound may be known before the documents are read.
            rows = self._of_days(arrived, min(present, today)).toArrow()
            past = rows.filter(pc.less_equal(rows["body_date"], pa.scalar(today)))
            return rows, min(max(present, pc.max(past["body_date"]).as_py() or present), today)
        kept = arrived.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            newest = kept.where(F.col("body_date") <= F.lit(today)).agg(F.max("body_date")).collect()[0][0]
            return self._of_days(kept, newest or today).toArrow(), newest or today
        finally:
            kept.unpersist()

    def _of_days(self, documents: DataFrame, newest: date) -> DataFrame:
        oldest = newest - timedelta(days=self._work.settings.live.days - 1)
        undated = F.col("body_date").isNull() | (F.col("body_date") < F.lit(GENESIS))
        return documents.where(undated | (F.col("body_date") >= F.lit(oldest)))

    def _message_changes(self, arrived: pa.Table, oldest: date) -> tuple[HeadChanges, pa.Table]:
        """Judge the messages that have come, each with what the head has of it.

        Returns:
            What the head gains and loses, and what is refused.
        """
        twice = self._published.in_head()
        messages = pa.array({*arrived["message"].to_pylist(), *twice}, pa.string())
        publication, quorum = (self._rows(name, messages) for name in (_PUBLICATION, _QUORUM))
        elsewhere = [*{*twice, *self._published_elsewhere(arrived)}]
        stored = self._stored(messages, publication, quorum, elsewhere)
        arrived = arrived.select(stored.schema.names).cast(stored.schema)
        candidates = of_days(distinct_vaas(pa.concat_tables([arrived, stored])), oldest, date.max)
        made = defaultdict(list, {name: [table.arrow.empty_table()] for name, table in EVENT_TABLES.items()})
        refused = [REFUSED.empty_table()]
        targets = {target.table: target for target in self.head.targets()}
        for rows in event_rows(candidates, self._reference, targets):
            for name, table in rows.tables.items():
                made[name].append(table.cast(EVENT_TABLES[name].arrow))
            refused.append(rows.landed[REFUSED_VAAS])
        tables = {name: pa.concat_tables(parts) for name, parts in made.items()}
        tables[REFUSED_VAAS] = pa.concat_tables(refused)
        days = {day for rows in tables.values() for day in pc.unique(rows["date"]).to_pylist()}
        with self._work.database.read() as connection:
            published = published_among(connection, self._work.network, days)
        tables = without(tables, "date", published)
        refused_vaas = tables.pop(REFUSED_VAAS)
        tables = without(tables, "row_key", elsewhere)
        return changes(tables, publication, quorum), refused_vaas

    def _details(self, change: HeadChanges) -> pa.Table:
        """Return amount and value of the token transfers that the head gains, where they are known."""
        gained = {name: change.added[name] for name in (_TRANSFERS, _METAS, _PUBLICATION)}
        metas = self._without_gone(self.head.rows(_METAS).to_table(), change)
        messages = self._without_gone(self._rows(_PUBLICATION, metas["row_key"].unique()), change)
        rows = {
            _TRANSFERS: gained[_TRANSFERS],
            _METAS: pa.concat_tables([metas.cast(gained[_METAS].schema), gained[_METAS]]),
            _PUBLICATION: pa.concat_tables(
                [messages.cast(gained[_PUBLICATION].schema), gained[_PUBLICATION]]
            ),
        }
        return self._values.rows(rows)

    @staticmethod
    def _without_gone(rows: pa.Table, change: HeadChanges) -> pa.Table:
        return without({"": rows}, "row_key", change.gone)[""]

    def _rows(self, name: str, messages: pa.Array) -> pa.Table:
        """Return the rows that the head has of some messages."""
        return rows_among(self.head.rows(name), "row_key", messages)

    def _stored(
        self, messages: pa.Array, publication: pa.Table, quorum: pa.Table, elsewhere: Sequence[str]
    ) -> pa.Table:
        """Return as documents what the head has of messages, and what it refused as it conflicts.

        Of messages that are published ``elsewhere``, what is published is among them.
        """
        refused = rows_among(self.head.rows(QUARANTINE.name), "reason", pa.array([CONFLICT]))
        published_quorum, published = (
            self._published.rows(name, elsewhere) for name in (_QUORUM, _PUBLICATION)
        )
        documents = [
            signed_documents(quorum, publication, self._section.source),
            signed_documents(published_quorum, published, self._section.source),
            quarantined_documents(refused),
        ]
        [batch] = pa.concat_tables(documents).combine_chunks().to_batches() or [_NO_DOCUMENT]
        with_identity = pa.Table.from_batches(identities([batch]))
        return with_identity.filter(pc.is_in(with_identity["message"], value_set=messages))

    def _published_elsewhere(self, arrived: pa.Table) -> list[str]:
        """Return the messages that are published, of those that came with bytes of a day that is not.

        Bytes without a real time show no day. What contradicts a published day is refused, as a day's build
        refuses it.
        """
        days = arrived["body_date"]
        dated = days.filter(pc.greater_equal(days, pa.scalar(GENESIS)))
        with self._work.database.read() as connection:
            published = published_among(connection, self._work.network, pc.unique(dated).to_pylist())
        others = arrived.filter(pc.invert(pc.is_in(days, value_set=pa.array(published, pa.date32()))))
        return self._published.among(pc.unique(others["message"]).to_pylist())

    def _without(self, gone: Mapping[str, Collection[str]]) -> tuple[list[WrittenFile], dict[str, set[str]]]:
        """Rewrite the files that hold rows of some messages, given for each table, without these.

        Returns:
            The new files, which are not part of the head yet, and the paths of those that they replace.
        """
        written: list[WrittenFile] = []
        replaced: dict[str, set[str]] = defaultdict(set)
        for name, messages in gone.items():
            keys = pa.array(sorted(messages), pa.string())
            for file in self.head.files(name) if messages else ():
                held = self.head.scan(name, [file]).to_table(["row_key"])["row_key"]
                if not pc.any(pc.is_in(held, value_set=keys)).as_py():
                    continue
                replaced[name].add(file.file_path)
                rows = self.head.scan(name, [file]).to_table()
                written += self.head.write(name, rows.filter(pc.invert(pc.is_in(held, value_set=keys))))
        return written, replaced
