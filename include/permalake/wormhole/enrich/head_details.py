"""Amount and value of the token transfers of a live head, from what the lake and its files know already.

No service is asked: a token or a moment that nobody has asked for yet is unknown until the day is built. What
does not change between batches is kept: the quotes of files, and what is published of tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from permalake.config import Settings
from permalake.engine.rows import Relation
from permalake.lake.day_rows import DayRows, latest_day_before
from permalake.pipeline.day_queries import cast
from permalake.pipeline.relations import LocalQueries, count, table
from permalake.spark.tasks import TaskShare
from permalake.wormhole.contracts.tables import (
    ASSET_META_PAYLOAD,
    CHAIN_ANSWERS,
    MESSAGE_PUBLICATION,
    TOKEN_TRANSFER_DETAILS,
    TOKEN_TRANSFER_PAYLOAD,
)
from permalake.wormhole.enrich.attestations import attested_records
from permalake.wormhole.enrich.price_service import PriceCache
from permalake.wormhole.enrich.quotes import Asking
from permalake.wormhole.enrich.token_values import price_sources, token_values
from permalake.wormhole.reference import load_reference
from permalake.wormhole.tables import amount_queries, moved_tokens
from permalake.wormhole.tables import enriched_tables as made
from permalake.wormhole.tables.chain_questions import NATIVE, NEWEST_FIRST
from permalake.wormhole.tables.chain_questions import TOKEN as TOKEN_QUESTION
from permalake.wormhole.tables.token_metadata import ATTESTED

_SHARE = TaskShare("512m", 1)
_NAME = TOKEN_TRANSFER_DETAILS.name
_MESSAGES, _METAS = MESSAGE_PUBLICATION.name, ASSET_META_PAYLOAD.name
_NO_APPLICATIONS = pa.schema(
    [
        *(("date", pa.date32()), ("row_key", pa.string()), ("token_chain", pa.int32())),
        *(("token_address", pa.string()), ("in_token_transfers", pa.int32())),
    ]
).empty_table()
_ANSWERS = f"""
SELECT * FROM {CHAIN_ANSWERS.name} WHERE told = 1 AND question IN ('{TOKEN_QUESTION}', '{NATIVE}')
QUALIFY row_number() OVER (PARTITION BY chain, question, subject ORDER BY {NEWEST_FIRST}) = 1
"""
Locations = Callable[[], Mapping[str, str]]
T = TypeVar("T")


class HeadDetails:
    """Amounts and values of new transfers of one head, batch by batch.

    Args:
        settings: The configuration.
        published: Returns the location of every published table, as it now is.
        cache: Stored quotes.
    """

    def __init__(self, settings: Settings, published: Locations, cache: PriceCache) -> None:
        self._directory = settings.wormhole.reference if settings.wormhole else None
        self._runner = LocalQueries(_SHARE, amount_queries.functions(self._directory))
        self._published = published
        self._sources = price_sources(settings, cache, Asking(stored=True))
        self._kept = _Kept()

    def rows(self, given: Mapping[str, pa.Table]) -> pa.Table:
        """Return the rows of ``token_transfer_details`` for new transfers.

        ``given``: by table the transfers, their messages, and every attestation of the head with its message.
        """
        transfers = given[TOKEN_TRANSFER_PAYLOAD.name]
        contract = TOKEN_TRANSFER_DETAILS.arrow
        if not len(transfers):
            return contract.empty_table()
        reference = load_reference(self._directory)
        moved = self._runner.results(
            moved_tokens.QUERIES,
            moved_tokens.SCHEMAS,
            {**given, "application_transfers": _NO_APPLICATIONS},
        )
        locations = self._published()
        first, last = pc.min(transfers["date"]).as_py(), pc.max(transfers["date"]).as_py()
        tables = _HeadTables(locations, given, self._kept)
        answers = self._kept.of(
            ("answers", locations[CHAIN_ANSWERS.name]), lambda: self._answers(locations[CHAIN_ANSWERS.name])
        )
        tokens: dict[str, Relation] = {
            **moved,
            ATTESTED: attested_records(self._runner, tables, first, last, first),
            made.ANSWERS: answers,
        }
        values = token_values(self._runner, tokens, reference, self._sources)
        details = made.enriched_tables(reference.chains)[_NAME]
        rows = self._runner.results(
            {_NAME: cast(details, TOKEN_TRANSFER_DETAILS)},
            {_NAME: contract},
            {**given, **values.inputs, made.ANSWERS: answers},
        )
        return table(rows[_NAME])

    def close(self) -> None:
        """Close the connection."""
        self._runner.close()

    def _answers(self, location: str) -> pa.Table:
        """Return the newest stored answer to each question about a token itself."""
        schema = made.INPUTS[made.ANSWERS]
        stored = {CHAIN_ANSWERS.name: DayRows(location, date.min, date.max).scan()}
        return table(
            self._runner.results({made.ANSWERS: _ANSWERS}, {made.ANSWERS: schema}, stored)[made.ANSWERS]
        )


@dataclass
class _Kept:
    """What was read of published tables, as long as it lies at the same places; the latest of each kind."""

    rows: dict[object, tuple[object, object]] = field(default_factory=dict)

    def of(self, key: tuple[object, ...], read: Callable[[], T]) -> T:
        """Return what ``read`` returned for the key (its kind, then the places), read if it is another."""
        kind, *places = key
        if kind not in self.rows or self.rows[kind][0] != places:
            self.rows[kind] = (places, read())
        return self.rows[kind][1]  # type: ignore[return-value]


@dataclass(frozen=True)
class _HeadTables:
    """Published tables, and the rows of a head beside those of attestations and their messages."""

    locations: Mapping[str, str]
    head: Mapping[str, pa.Table]
    kept: _Kept

    def latest_before(self, name: str, day: date) -> date | None:
        """Return the latest published day before ``day`` of which a table has rows."""
        location = self.locations[name]
        return self.kept.of((f"day of {name}", location, day), lambda: latest_day_before(location, day))

    def rows(self, name: str, first: date, last: date) -> Relation:
        """Return the rows of a table of the days ``first..last``; of messages those of attestations."""
        if name not in (_METAS, _MESSAGES):
            return self._published(name, first, last)
        metas = self._published(_METAS, first, last)
        published = metas if name == _METAS else self._published(_MESSAGES, first, last, metas["row_key"])
        head = self.head[name]
        return pa.concat_tables([published.select(head.schema.names).cast(head.schema), head])

    def _published(self, name: str, first: date, last: date, keys: pa.ChunkedArray | None = None) -> pa.Table:
        location = self.locations[name]
        row_filter = None if keys is None else pc.field("row_key").isin(pc.unique(keys))

        def read() -> pa.Table:
            rows = DayRows(location, first, last).scan()
            return rows.to_table(filter=row_filter) if count(rows) else rows.schema.empty_table()

        return self.kept.of((name, location, self.locations[_METAS], first, last), read)
